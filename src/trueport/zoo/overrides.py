"""What the general way gets wrong, one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trueport.zoo.plans import Plan

CONFIGS: Mapping[str, Mapping[str, Any]] = {}
"""By model type or class: fields of the configuration."""
PLANS: Mapping[str, Callable[[Any], Plan]] = {}
"""By model type or class: the call."""

"""What the general way gets wrong, one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trueport.zoo.plans import Plan

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "cvt": {"depth": (1, 2, 3)},  # the rate of a stage is looked up among those of its blocks
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},  # said once more than the number of layers
    "granite_speech5_ctc": {"context_size": 16},  # at most the number of positions
    "granite_speech5_encoder": {"context_size": 16},
    "blip-2": {"image_token_index": 100},  # None, and then no picture is looked for
}
"""By model type or class: fields of the configuration."""
PLANS: Mapping[str, Callable[[Any], Plan]] = {}
"""By model type or class: the call."""

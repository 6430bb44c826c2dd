"""What torch notes about its traces would bury the program that failed."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.DEBUG)
    yield
    logging.disable(logging.NOTSET)

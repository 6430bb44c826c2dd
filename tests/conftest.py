"""What holds for every test: it leaves torch and the folder for temporary files as they were, races no clock, and draws
the same numbers each time."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

from tests.global_state import torch_state
from trueport.graph.validate import ASKED

# The machine is shared: how long an example takes says nothing about our code. And what fails must fail again.
settings.register_profile(
    "shared machine", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared machine")


def _seed() -> None:
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)


_seed()  # for what test files draw when they are imported


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Everything of ours that is temporary goes to a folder of this session, which must be empty of it in the end."""
    folder = tmp_path_factory.mktemp("temporary")
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    yield
    tempfile.tempdir = before
    left = [path.name for path in Path(folder).glob("trueport-*")]
    assert not left, f"left behind: {left}"


@pytest.fixture(scope="session", autouse=True)
def calls_are_remembered_for_this_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Not among the user's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRUEPORT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def graphs_are_validated() -> Iterator[None]:
    """Every graph that a test captures is held against the spec, also in the processes that tests start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ASKED, "1")
        yield


@pytest.fixture(autouse=True)
def chance_is_the_same_each_time() -> None:
    """Whatever ran before in this process."""
    _seed()


@pytest.fixture(autouse=True)
def torch_is_left_as_it_was() -> Iterator[None]:
    """Or else a later test fails, far away, and only in some orders."""
    before = torch_state()
    yield
    assert torch_state() == before

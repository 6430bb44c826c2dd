"""Where the releases of torch differ; the form of an older one is tried in this one."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import trueport
from trueport.capture import trace
from trueport.torch_internals import releases


@pytest.fixture
def guards(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each time that fake tensors ask for a guard of the device."""
    asked: list[str] = []
    monkeypatch.setattr(torch._C, "_ensureCUDADeviceGuardSet", lambda: asked.append("guard"))
    monkeypatch.setattr(FakeTensorMode, "avoid_device_init", property(lambda mode: True))  # as where there is no GPU
    return asked


@pytest.mark.parametrize(("release", "made"), [((2, 10), False), ((2, 11), False), ((2, 12), True)])
def test_up_to_2_11_no_guard_is_made_that_ends_with_its_thread(
    release: tuple[int, int], made: bool, guards: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases, "_RELEASE", release)
    with releases.guard_of_no_thread(), FakeTensorMode():
        pass
    assert bool(guards) is made
    with FakeTensorMode():
        pass
    assert guards, "afterwards, torch's own function is there again"


def test_a_trace_is_made_without_such_a_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    inside: list[bool] = []
    seen: list[bool] = []

    @contextlib.contextmanager
    def noted() -> Iterator[None]:
        inside.append(True)
        yield
        inside.pop()

    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if torch.compiler.is_exporting():
                seen.append(bool(inside))
            return x + 1

    monkeypatch.setattr(trace, "guard_of_no_thread", noted)
    trueport.export(Model().eval(), (torch.ones(2),), verify=False)
    assert seen and all(seen)


def test_a_number_chosen_by_what_nobody_knows_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "_RELEASE", (2, 11))
    number = releases.either(ShapeEnv().create_unbacked_symbool(), 1, 0)
    assert number.node.hint is None
    assert isinstance(1.0 / number, torch.SymFloat)


def test_up_to_2_11_the_length_of_a_slice_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "_RELEASE", (2, 11))
    places = [None, *range(-6, 7), sys.maxsize]
    for rows, start, end, step in itertools.product(range(5), places, places, (1, 2)):
        assert releases.length_of_slice(rows, start, end, step) == len(range(rows)[start:end:step])
    shapes = ShapeEnv()
    rows, place, anywhere = (shapes.create_unbacked_symint() for _ in range(3))
    for number in (rows, place):
        shapes._constrain_range_for_size(number.node.expr)
    assert str(releases.length_of_slice(rows, None, 2, 1)) == "Min(2, u0)"
    assert str(releases.length_of_slice(rows, None, place, 1)) == "Min(u0, u1)"
    assert releases.length_of_slice(rows, None, anywhere, 1) is None, "it may count from the end"

"""What a forward raises while it is traced, and eager did not raise on the example."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import trueport
from trueport.diagnostics.base import Diagnostic

X = torch.ones(3, 4)


class Stop(BaseException):
    """As libraries have them, to get past every `except Exception`."""


class Raising(nn.Module):
    def forward(self, x):
        if x.sum() > 100:
            raise Stop("enough")  # <- here
        return x * 2


class InAHelper(nn.Module):
    def ended(self, x):
        raise Stop  # <- here

    def forward(self, x):
        return self.ended(x) if torch.compiler.is_exporting() else x


class InALoop(nn.Module):
    def forward(self, x):
        for row in x:
            if row.sum() > 100:
                raise Stop("enough")  # <- here
        return x * 2


class Ending(nn.Module):
    def forward(self, x):
        if x.sum() > 100:
            sys.exit(3)  # <- here
        return x * 2


class Interrupted(nn.Module):
    def forward(self, x):
        if torch.compiler.is_exporting():
            raise KeyboardInterrupt
        return x


class Masked(nn.Module):
    """The mask has another width than what it is added to: eager only runs where there is none."""

    def forward(self, x):
        mask = None if x.min() > 0 else (x > 0).to(x.dtype)
        h = x[:, :2]
        if mask is not None:
            h = h + mask
        return h * 2


class MaskedOrNot(Masked):
    def forward(self, x):
        try:
            return super().forward(x)
        except RuntimeError:
            return -x[:, :2]


class OfNothing(nn.Module):
    def forward(self, x):
        try:
            return torch.cat([x, x]) if x.min() > 0 else torch.cat([])
        except (RuntimeError, ValueError):
            return -x


class MaskedByRows(nn.Module):
    def forward(self, x):
        if x.min() > 0:
            return x @ torch.ones(4, 3)
        return x.T @ torch.ones(7, 3)  # <- here


class MaskedByRowsOfALongTable(nn.Module):
    """So long that no kernel is run to see which sizes it takes."""

    def forward(self, x):
        if x.min() > 0:
            return x @ torch.ones(4, 3)
        return torch.ones(1300, 1300) + x.sum(1)  # <- here


class OfNone(nn.Module):
    """Not given, and used where the values say so: eager, too, ends there with an error."""

    def __init__(self, use):
        super().__init__()
        self.use = use

    def forward(self, x, extra=None):
        if x.sum() > 100:
            return self.use(x, extra)
        return x * 2


class OfNoneOrNot(OfNone):
    def forward(self, x, extra=None):
        try:
            return super().forward(x, extra)
        except TypeError:
            return -x


def the_sum(x, extra):
    for each in extra:
        x = x + each
    return x


OF_NONE = {
    "item": lambda x, extra: x + extra[0],
    "slice": lambda x, extra: x + extra[: x.shape[0]],
    "attribute": lambda x, extra: x + extra.weight,
    "call": lambda x, extra: extra(x),
    "loop": the_sum,
    "right": lambda x, extra: x + extra,
    "left": lambda x, extra: extra @ x,
}


class AnotherWayForExports(nn.Module):
    """As libraries have them: eager never goes there, and this model could not."""

    def forward(self, x):
        return x.view(x.shape[0], 5) if torch.compiler.is_exporting() else x * 2


def refused(model: nn.Module) -> Diagnostic:
    (found,) = trueport.check(model, (X,), dynamic_shapes={"x": {0: "n"}}).errors
    return found


def marked_line(model: nn.Module) -> int:
    lines = open(__file__).read().splitlines()
    first = next(at for at, line in enumerate(lines, 1) if line.startswith(f"class {type(model).__name__}("))
    return next(at for at, line in enumerate(lines[first:], first + 1) if line.endswith("# <- here"))


@pytest.mark.parametrize("model", [Raising(), InAHelper(), InALoop()], ids=lambda model: type(model).__name__)
def test_an_error_that_is_no_exception_is_told_at_its_line(model: nn.Module) -> None:
    found = refused(model)
    assert (found.code, found.where and found.where.line) == ("TP204", marked_line(model))
    assert found.message.startswith("`Stop` is raised here")
    assert "derive Stop from Exception" in found.fix


def test_what_it_says_is_shown() -> None:
    assert refused(Raising()).seen == ("enough",)
    assert refused(InAHelper()).seen == ()


def test_the_end_of_the_process_keeps_its_words() -> None:
    found = refused(Ending())
    assert (found.code, found.where and found.where.line) == ("TP204", marked_line(Ending()))
    assert "the process is ended here" in found.message


def test_an_interruption_is_nobodys_finding() -> None:
    with pytest.raises(KeyboardInterrupt):
        trueport.check(Interrupted(), (X,))


@pytest.mark.parametrize(
    "model",
    [Masked(), MaskedOrNot(), OfNothing(), AnotherWayForExports()],
    ids=lambda m: type(m).__name__,
)
def test_an_arm_that_an_operator_ends_is_one_that_raises(model: nn.Module) -> None:
    report = trueport.check(model, (X,), dynamic_shapes={"x": {0: "n"}})
    assert not report.errors
    # No input goes that way, which is told as well.
    assert [found.code for found in report.diagnostics] == (["TP105", "TP810"] if type(model) is Masked else [])


@pytest.mark.parametrize("use", OF_NONE.values(), ids=OF_NONE)
def test_an_arm_that_needs_what_is_none_is_one_that_raises(use: Callable[..., torch.Tensor]) -> None:
    report = trueport.check(OfNone(use), (X,), dynamic_shapes={"x": {0: "n"}})
    assert not report.errors
    assert [found.code for found in report.diagnostics] == ["TP105", "TP810"]


def test_where_the_error_about_none_is_caught_that_is_what_the_graph_does() -> None:
    report = trueport.check(OfNoneOrNot(OF_NONE["item"]), (X,), dynamic_shapes={"x": {0: "n"}})
    assert not report.errors
    assert not report.diagnostics


@pytest.mark.parametrize("model", [MaskedByRows(), MaskedByRowsOfALongTable()], ids=lambda model: type(model).__name__)
def test_an_operator_that_only_some_sizes_end_is_told_at_its_line(model: nn.Module) -> None:
    found = refused(model)
    assert (found.code, found.where and found.where.line) == ("TP302", marked_line(model))


class OneOrMore(nn.Module):
    def forward(self, x):
        if x.shape[0] > 1:
            return x.sum(0)
        if x.shape[0] != 1:
            raise ValueError("empty")
        return x.squeeze(0) * 2


class OneAtATime(nn.Module):
    def forward(self, x):
        if x.shape[0] > 1:
            return x.sum(0)
        assert x.shape[0] == 1
        return x.squeeze(0) * 2


@pytest.mark.parametrize("model", [OneOrMore(), OneAtATime()], ids=lambda model: type(model).__name__)
def test_the_rest_of_an_arm_relies_on_what_it_asked_for(model: nn.Module) -> None:
    report = trueport.check(model, (torch.randn(6, 4),), dynamic_shapes={"x": {0: "n"}})
    assert not report.errors
    assert {1, 5} <= {tried.sizes["n"] for tried in report.checks}


class PooledToAFixedSize(nn.Module):
    """The stride is 0 for the example, which does not come there."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, w = x.shape[-2:]
        if h != 16 or w != 16:
            if h % 16 != 0 or w % 16 != 0:
                x = F.interpolate(x, size=(16, 16), mode="bilinear")
            else:
                stride = (h // 16, w // 16)
                x = F.avg_pool2d(x, kernel_size=stride, stride=stride)
        return x


@pytest.mark.parametrize("size", [4, 16, 32])
def test_an_arm_that_divides_by_what_is_0_for_the_example(size: int) -> None:
    shapes = ({0: "batch", 2: "height", 3: "width"},)
    program = trueport.export(PooledToAFixedSize(), (torch.ones(1, 3, size, size),), dynamic_shapes=shapes)
    torch.manual_seed(0)
    for height, width in ((4, 4), (16, 16), (16, 48), (32, 16), (64, 32), (32, 20)):
        x = torch.randn(2, 3, height, width)
        torch.testing.assert_close(torch.as_tensor(program(x)), PooledToAFixedSize()(x), atol=1e-5, rtol=1e-5)


class LengthOfNone(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = None
        return x * len(found) if x.sum() > 100 else x + 1  # type: ignore[arg-type]


class JoinedWithNone(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = None if x.sum() < 100 else x * 2
        if x.sum() < -100:
            return torch.cat([x, found])  # type: ignore[list-item]
        return x + 1


class LayerOfNone(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = None if x.sum() > 100 else x.new_ones(3, 3)
        return F.linear(x, weight)  # type: ignore[arg-type]


class NoneIsCaught(nn.Module):
    """The `except` belongs to one arm only."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = None
        try:
            if x.sum() > 0:
                x = torch.cat([x, found])  # type: ignore[list-item]
        except TypeError:
            x = x * 2
        return x


@pytest.mark.parametrize("model", [LengthOfNone, JoinedWithNone, LayerOfNone, NoneIsCaught])
def test_what_c_refuses_of_none_is_raised_in_eager_too(model: type[nn.Module]) -> None:
    program = trueport.export(model(), (-torch.ones(3),))
    for x in (torch.ones(3), -torch.ones(3), torch.arange(3.0)):
        torch.testing.assert_close(torch.as_tensor(program(x)), model()(x))

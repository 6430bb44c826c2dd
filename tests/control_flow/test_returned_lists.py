"""Lists of open length that forward returns: one output that is an ONNX sequence; the program gives the list again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

from tests.control_flow.kept_alive import FREE, ROWS, assert_kept_alive, refused, rows
from trueport.program import Program

THREE = (torch.arange(9.0).reshape(3, 3) - 4,)
"""Rows of negative and of positive sums."""
OTHERS = rows(0, 1, 2, 7)


def sequences(program: Program) -> list[str]:
    """The outputs that are sequences."""
    return [output.name for output in program.report.outputs if output.is_sequence]


class Model(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = function


def filled(x):
    out = []
    for row in x:
        out.append(row * 2)
    return out


def filled_by_while(x):
    out, total = [], x.sum() - x.sum()
    while total < x.abs().sum() and len(out) < 5:
        total = total + 3
        out.append(x.sum(0) + total)
    return out


def among_others(x):
    out = []
    for row in x:
        out.append(row.relu())
    return x.sum(), out, {"last": x * 2, "again": out}


def made_by_a_comprehension(x):
    return [row.exp() for row in x]


def filtered(x):
    return [row for row in x if row.sum() > 0]


def of_the_rows(x):
    return list(x)


def as_a_tuple(x):
    out = []
    for row in x:
        out.append(row + 1)
    return tuple(out)


def longer_by_a_branch(x):
    out = [x.sum(0)]
    if x.sum() > 0:
        out.append(x.mean(0) if x.shape[0] > 0 else x.sum(0))
        out.append(x.sum(0) * 2)
    return out


def empty_or_one(x):
    out = []
    if x.sum() > 0:
        out.append(x * 2)
    return out


def begun_before_the_loop(x):
    out = [x.sum(0), x.sum(0) * 3]
    for row in x:
        out.append(row)
    out.append(x.sum(0) - 1)
    return out


def of_different_lengths(x):
    out = []
    for i in range(x.shape[0]):
        out.append(x[: i + 1])
    return out


def different_along_the_last_axis(x):
    out = []
    for i in range(x.shape[0]):
        out.append(x[:, : i + 1].sum(0))
    return out


def different_along_two_axes(x):
    out = []
    for i in range(x.shape[0]):
        out.append(x[: i + 1, : i % 3 + 1])
    return out


def different_along_a_later_axis(x):
    out = []
    for i in range(x.shape[0]):
        out.append(x[:2, : i % 3 + 1])
    return out


def reversed_in_place(x):
    out = []
    for row in x:
        out.append(row)
    out.reverse()
    return out


def pairs(x):
    out = []
    for i, row in enumerate(x):
        out.append((row, row.sum() * i))
    return out


def dicts(x):
    out = []
    for row in x:
        out.append({"row": row, "norm": row.norm(), "kind": "row"})
    return out


def numbers(x):
    out = []
    for i in range(x.shape[0]):
        out.append(i * 2)
    return out


def floats_and_flags(x):
    out = []
    for row in x:
        out.append((row.sum().item(), bool(row.sum() > 0)))
    return {"seen": out}


def of_integers(x):
    return [row.to(torch.int8) for row in x]


def of_flags(x):
    return [row > 0 for row in x]


def of_complex_numbers(x):
    return [torch.complex(row, row) for row in x]


def of_one_number_each(x):
    return [row.sum() for row in x]


PLAIN = [
    filled,
    filled_by_while,
    made_by_a_comprehension,
    filtered,
    of_the_rows,
    as_a_tuple,
    longer_by_a_branch,
    empty_or_one,
    begun_before_the_loop,
    of_different_lengths,
    different_along_the_last_axis,
    different_along_two_axes,
    different_along_a_later_axis,
    reversed_in_place,
    of_integers,
    of_flags,
    of_complex_numbers,
    of_one_number_each,
]


@pytest.mark.parametrize("function", PLAIN, ids=lambda function: function.__name__)
def test_a_list_is_one_sequence(function: Callable[..., Any]) -> None:
    program = assert_kept_alive(Model(function), THREE, OTHERS, dynamic_shapes=ROWS, verify=True)
    assert sequences(program) == ["output"]
    assert [found.code for found in program.report.diagnostics if found.code == "TP109"] == ["TP109"]


def test_among_other_outputs() -> None:
    program = assert_kept_alive(Model(among_others), THREE, OTHERS, dynamic_shapes=ROWS, verify=True)
    assert program.output_names == ("output_0", "output_1", "output_2_last", "output_2_again")
    assert sequences(program) == ["output_1", "output_2_again"]


def test_a_list_of_pairs_is_two_sequences() -> None:
    program = assert_kept_alive(Model(pairs), THREE, OTHERS, dynamic_shapes=ROWS, verify=True)
    assert sequences(program) == ["output_0", "output_1"]


def test_a_list_of_dicts_is_a_sequence_for_each_key() -> None:
    program = assert_kept_alive(Model(dicts), THREE, OTHERS, dynamic_shapes=ROWS, verify=True)
    assert sequences(program) == ["row", "norm"]
    assert program.report.left_out == {"kind": "'row'"}


def test_a_list_of_numbers_is_one_tensor() -> None:
    program = assert_kept_alive(Model(numbers), THREE, OTHERS, dynamic_shapes=ROWS, verify=True)
    assert not sequences(program)
    assert [str(output) for output in program.report.outputs] == ["output: int64[x_dim0]"]


def test_numbers_in_pairs() -> None:
    program = assert_kept_alive(Model(floats_and_flags), THREE, OTHERS, dynamic_shapes=ROWS, verify=True)
    assert program.output_names == ("seen_0", "seen_1")


def test_names_of_the_users_own() -> None:
    program = assert_kept_alive(
        Model(pairs), THREE, OTHERS, dynamic_shapes=ROWS, output_names=["rows", "sums"], verify=True
    )
    assert program.output_names == ("rows", "sums")


class Found(NamedTuple):
    boxes: list[torch.Tensor]
    count: int


@dataclass
class Seen:
    rows: list[torch.Tensor]
    total: torch.Tensor


class InATuple(nn.Module):
    def forward(self, x):
        boxes = [row for row in x if row.sum() > 0]
        return Found(boxes, len(boxes))


class InADataclass(nn.Module):
    def forward(self, x):
        return Seen([row * 2 for row in x], x.sum())


@pytest.mark.parametrize("model", [InATuple(), InADataclass()], ids=lambda model: type(model).__name__)
def test_in_a_container(model: nn.Module) -> None:
    assert_kept_alive(model, THREE, OTHERS, dynamic_shapes=ROWS, verify=True)


# --- pieces that torch cuts


def unbound(x):
    return x.unbind(0)


def unbound_along_the_free_axis(x):
    return x.t().unbind(1)


def cut_in_twos(x):
    return torch.split(x, 2)


def cut_in_ones(x):
    return x.split(1)


def cut_along_the_second_axis(x):
    return x.t().split(2, dim=1)


def all_but_the_first_piece(x):
    return x.split(2)[1:]


def pieces_backwards(x):
    return x.split(2)[::-1]


def chunks(x):
    return x.chunk(3)


def by_listed_sizes(x):
    sizes = []
    for i in range(x.shape[0]):
        sizes.append(i % 2 * 2 if i + 1 < x.shape[0] or x.shape[0] % 2 == 0 else 1)
    return x.repeat(3, 1)[: sum(sizes)].split(sizes)


def each_piece_doubled(x):
    return [piece * 2 for piece in x.split(2)]


def as_a_list(x):
    return list(x.split(2))


@pytest.mark.parametrize(
    "function",
    [
        unbound,
        unbound_along_the_free_axis,
        cut_in_twos,
        cut_in_ones,
        cut_along_the_second_axis,
        all_but_the_first_piece,
        pieces_backwards,
        chunks,
        by_listed_sizes,
        each_piece_doubled,
        as_a_list,
    ],
    ids=lambda function: function.__name__,
)
def test_pieces(function: Callable[..., Any]) -> None:
    others = OTHERS if function is not by_listed_sizes else rows(1, 2, 7)
    shapes = ROWS if function is not by_listed_sizes else ({0: torch.export.Dim("n", min=1)},)
    program = assert_kept_alive(Model(function), THREE, others, dynamic_shapes=shapes, verify=True)
    assert sequences(program) == ["output"]


def test_a_cut_needs_no_loop() -> None:
    assert_kept_alive(Model(cut_in_twos), THREE, OTHERS, dynamic_shapes=ROWS, loops=0)
    assert_kept_alive(Model(of_the_rows), THREE, OTHERS, dynamic_shapes=ROWS, loops=0)


@pytest.mark.parametrize("opset", [13, 18, 21, 23])
def test_in_every_opset(opset: int) -> None:
    assert_kept_alive(Model(different_along_two_axes), THREE, OTHERS, dynamic_shapes=ROWS, opset_version=opset)


def test_a_second_free_size_that_is_empty() -> None:
    given = [(torch.randn(*sizes),) for sizes in ((3, 0), (0, 0), (0, 2), (2, 5))]
    free = ({0: FREE, 1: FREE},)
    for function in (filled, of_different_lengths, cut_in_twos, of_integers):
        assert_kept_alive(Model(function), THREE, given, dynamic_shapes=free)


# --- what cannot be


class KeepsItsRows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[torch.Tensor] = []

    def forward(self, x):
        for row in x:
            self.seen.append(row)
        return self.seen


def test_a_list_that_the_model_keeps_is_refused() -> None:
    found = refused(KeepsItsRows(), THREE, dynamic_shapes=ROWS)
    assert (found.code, found.where.line) == ("TP103", KeepsItsRows.forward.__code__.co_firstlineno + 1)
    assert "`seen`" in found.message


class MakesItsRows(KeepsItsRows):
    def forward(self, x):
        self.seen = []
        return super().forward(x)


def test_a_list_that_each_call_makes_anew_is_none() -> None:
    assert_kept_alive(MakesItsRows(), THREE, OTHERS, dynamic_shapes=ROWS, verify=True)


def test_a_list_that_is_always_empty_is_no_result() -> None:
    assert refused(Model(lambda x: []), THREE).code == "TP202"


def nested(x):
    out = []
    for i in range(x.shape[0]):
        inner = []
        for j in range(i):
            inner.append(x[j])
        out.append(inner)
    return out


def of_different_ranks(x):
    out = [x]
    for row in x:
        out.append(row)
    return out


def of_nothing(x):
    out = []
    for _ in x:
        out.append(None)
    return x, out


def in_half_precision(x):
    return [row.bfloat16() for row in x]


def spread_among_others(x):
    out = [row * 2 for row in x]
    return [x.sum(), [*out, x]]


@pytest.mark.parametrize(
    ("function", "code", "line"),
    [
        (nested, "TP104", 2),
        (of_different_ranks, "TP103", 2),
        (of_nothing, "TP104", 2),
        (in_half_precision, "TP104", 1),
        (spread_among_others, "TP104", 1),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_what_no_sequence_holds_is_refused_at_its_line(function: Callable[..., Any], code: str, line: int) -> None:
    found = refused(Model(function), THREE, dynamic_shapes=ROWS)
    assert (found.code, found.where.line) == (code, function.__code__.co_firstlineno + line)
    assert "torch.stack" in found.fix or code == "TP103"

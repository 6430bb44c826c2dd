"""A small part of the sweep over edge operands: nothing differs at everyday ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.edges.kept import add, read
from benchmarks.edges.sweep import Seen, Swept, sweep

SAMPLE = [
    (
        "float32",
        "add ceil copysign cumprod eq exp floor gather index_select mul nn.functional.gelu round sigmoid softmax tril "
        "where",
    ),
    ("float16", "add cumprod floor_divide maximum mean round"),
    ("float64", "fmod nn.functional.interpolate/bilinear remainder softmax sum"),
    ("int64", "add bitwise_and cumsum eq gather index_select mul where"),
    ("int8", "add bitwise_xor eq maximum mul"),
    ("uint8", "add eq minimum mul"),
    ("bool", "logical_and logical_not any where"),
    ("complex64", "abs add conj cumprod div eq exp matmul mul sqrt sum where"),
]


@pytest.mark.parametrize(("variant", "operators"), SAMPLE, ids=[variant for variant, _ in SAMPLE])
def test_no_sample_differs_at_everyday_operands(variant: str, operators: str, tmp_path: Path) -> None:
    swept = sweep(operators.split(), variant, (), 2, folder=tmp_path, phase=lambda _: None)
    assert all(any(call.runs for call in each.calls) or not each.calls for each in swept)
    assert sum(call.runs for each in swept for call in each.calls) > 10
    differing = [
        (call.operator, call.shown)
        for each in swept
        for call in each.calls
        for shown in call.shown
        if shown[0] != "nonfinite"
    ]
    assert differing == []


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    call = Seen("aten.add.Tensor", "int8 int8", "((%0, %1), ())", "abc", 3, "", (("ordinary", "1, 2", "3", "4"),))
    file = tmp_path / "int8.jsonl"
    add(file, Swept("add", (), 0, "time limit"))
    add(file, Swept("add", (call,), 1))
    assert list(read(file)) == [Swept("add", (call,), 1)]

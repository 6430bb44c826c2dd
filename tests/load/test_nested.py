"""`-i batch.text.ids:BxS:i64`: several specs make one argument, of the kind that forward says."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import pytest
import torch

from trueport.errors import UsageError
from trueport.load.request import make_job
from trueport.load.specs import parse_inputs


@dataclasses.dataclass
class Text:
    ids: torch.Tensor
    mask: torch.Tensor | None = None


@dataclasses.dataclass
class Batch:
    image: torch.Tensor
    text: Text | None


class Pair(NamedTuple):
    h: torch.Tensor
    c: torch.Tensor


class Annotated(torch.nn.Module):
    def forward(self, batch: Batch, states: list[Pair], n: int = 1) -> Any:
        return batch, states


class Plain(torch.nn.Module):
    def forward(self, batch, states):  # type: ignore[no-untyped-def]
        return batch, states


def test_an_annotation_says_what_is_made() -> None:
    specs = ["batch.image:BxTx6", "batch.text.ids:BxS:i64@0..99", "states.0.h:B", "states.0.c:B", "n=3"]
    parsed = parse_inputs(specs, {}, Annotated())
    batch, states, n = parsed.args
    assert type(batch) is Batch
    assert type(batch.text) is Text
    assert [type(state) for state in states] == [Pair]
    assert n == 3
    job = make_job(Annotated(), parsed.args, dynamic_shapes=parsed.dynamic_shapes, value_ranges=parsed.value_ranges)
    assert {leaf.name: [axis.formula for axis in leaf.axes.values()] for leaf in job.inputs} == {
        "batch_image": ["B", "T"], "batch_text_ids": ["B", "S"], "states_0_h": ["B"], "states_0_c": ["B"], "n": [],
    }  # fmt: skip
    assert {leaf.name: leaf.value_range for leaf in job.inputs if leaf.value_range} == {"batch_text_ids": (0, 99)}


def test_without_one_it_is_a_dict_or_a_list() -> None:
    parsed = parse_inputs(["batch.image:2x3", "batch.text.ids:2:i64", "states.1:3", "states.0:2"], {}, Plain())
    batch, states = parsed.args
    assert {name: type(value) for name, value in batch.items()} == {"image": torch.Tensor, "text": dict}
    assert [tuple(state.shape) for state in states] == [(2,), (3,)]


def test_sizes_are_shared_and_derived_across_parts() -> None:
    parsed = parse_inputs(["batch.x:BxS", "batch.past:BxP", "states:Bx(P+S):bool"], {}, Plain())
    batch, mask = parsed.args
    assert mask.shape[1] == batch["x"].shape[1] + batch["past"].shape[1]
    assert set(parsed.dynamic_shapes or ()) == {'batch["x"]', 'batch["past"]', "states"}


@pytest.mark.parametrize(
    ("model", "specs", "told"),
    [
        (Plain(), ["batch.x:3", "batch:3", "states:3"], "gives batch a value"),
        (Plain(), ["batch.x:3", "states.1:3"], "some are missing"),
        (Plain(), ["batches.x:3", "states:3"], "no parameter 'batches'"),
        (Plain(), ["batch.x:3"], "forward needs states"),
        (Annotated(), ["batch.imag:3", "states.0.h:3", "states.0.c:3"], "Batch has no field 'imag'"),
        (Annotated(), ["batch.image:3", "states.0.h:3", "states.0.c:3"], "batch cannot be made of image"),
    ],
)
def test_what_cannot_be_made_is_told(model: torch.nn.Module, specs: list[str], told: str) -> None:
    with pytest.raises(UsageError, match=told) as refused:
        parse_inputs(specs, {}, model)
    assert refused.value.diagnostics[0].fix

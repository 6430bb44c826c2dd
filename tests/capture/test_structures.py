"""What goes in and comes out: any Python structure, numbers as inputs, and names that the user knows."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

import pytest
import torch
from torch import nn

from tests.capture.helpers import FREE, assert_captured, assert_exported, assert_same, refusal
from trueport.graph.regions import Number


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


@dataclass
class Scores:
    logits: torch.Tensor
    hidden: torch.Tensor | None = None


def x(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes)


def test_a_dict_of_inputs_is_given_by_key():
    def model(batch):
        return {"sum": batch["a"] + batch["b"], "first": batch["a"]}

    graph = assert_captured(model, ({"a": x(2, 3), "b": x(2, 3)},), [({"a": x(2, 3), "b": x(2, 3)},)])
    assert [given.name for given in graph.inputs] == ["batch_a", "batch_b"]
    assert [given.name for given in graph.outputs] == ["sum", "first"]


def test_lists_tuples_and_named_tuples_keep_their_type():
    def model(pair, several):
        total = pair.left + several[0] + several[1][0]
        return Pair(total, total * 2), [total, (total, total + 1)]

    args = (Pair(x(3), x(3)), [x(3), (x(3),)])
    assert_captured(model, args, [(Pair(x(3), x(3)), [x(3), (x(3),)])])
    assert_exported(model, args)


def test_a_dataclass_with_a_missing_field():
    def model(given):
        return Scores(given.logits.softmax(-1), None)

    graph = assert_captured(
        model, (Scores(x(2, 5)),), [(Scores(x(4, 5)),)], dynamic_shapes={"given": {"logits": {0: "n"}}}
    )
    assert [given.name for given in graph.inputs] == ["given_logits"]
    assert graph.outputs[0].name == "logits"
    assert graph.outputs[1].value is None


def test_ordered_and_nested_structures():
    def model(batch, *rest, scale=None):
        first = batch["outer"]["inner"][0]
        return OrderedDict(z=first + rest[0], a=[rest[1], {"deep": (first * 2, None)}])

    args = ({"outer": {"inner": [x(2), x(2)]}, "none": None}, x(2), x(4))
    graph = assert_captured(model, args)
    assert [given.name for given in graph.inputs] == ["batch_outer_inner_0", "batch_outer_inner_1", "rest_0", "rest_1"]


def test_a_positional_dict_as_the_last_argument_is_an_argument():
    def model(y, options):
        return y * options["scale"]

    assert_captured(model, (x(2), {"scale": x(2)}), [(x(2), {"scale": x(2)})])


def test_keyword_arguments_follow_the_signature():
    def model(y, *, bias=None, scale=1.0):
        return y * scale + bias

    graph = assert_captured(model, (x(2),), [(x(2),)], kwargs={"scale": 3.0, "bias": x(2)})
    assert [given.name for given in graph.inputs] == ["y", "bias", "scale"]


# --- what may be returned


def test_an_input_returned_as_it_is():
    def model(y):
        return y

    assert_captured(model, (x(2, 3),), [(x(5, 3),)], dynamic_shapes=({0: FREE},))
    program = assert_exported(model, (x(2, 3),), [(x(5, 3),)], dynamic_shapes=({0: FREE},))
    assert program.input_names != program.output_names


def test_the_same_tensor_returned_twice():
    def model(y):
        z = y * 2
        return z, z, y

    assert_captured(model, (x(2),), [(x(2),)])
    assert_exported(model, (x(2),), [(x(2),)])


def test_a_weight_and_a_constant_returned():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(x(3))

        def forward(self, y):
            return y + self.w, self.w, torch.tensor([1, 2, 3])

    assert_captured(Model(), (x(3),), [(x(3),)])
    assert_exported(Model(), (x(3),), [(x(3),)])


def test_python_numbers_text_and_none_returned():
    def model(y):
        return {"twice": y * 2, "n": 3, "f": 0.5, "yes": True, "text": "bert", "nothing": None}

    assert_captured(model, (x(3),))
    program = assert_exported(model, (x(3),))
    assert program.output_names == ("twice", "n", "f", "yes")


def test_a_size_returned():
    def model(y):
        return y.shape[1], y * 2, y.shape[0] * y.shape[1], y.shape[1] > 4

    others = [(x(5, 7),), (x(1, 2),), (x(0, 0),)]
    graph = assert_captured(model, (x(2, 3),), others, dynamic_shapes=({0: FREE, 1: FREE},))
    assert isinstance(graph.outputs[0].value, Number)
    assert_exported(model, (x(2, 3),), others, dynamic_shapes=({0: FREE, 1: FREE},))


def test_a_whole_shape_returned():
    def model(y):
        return y.shape

    assert_captured(model, (x(2, 3),), [(x(5, 3),)], dynamic_shapes=({0: FREE},))


def test_an_output_that_no_model_can_return_is_named():
    class Handle:
        pass

    found = refusal(lambda y: (y, open), (x(2),)).diagnostics
    assert [each.code for each in found] == ["TP202"]


# --- what stays an input


def test_an_unused_input_stays_an_input():
    def model(y, unused, also_unused=2.0):
        return y * 2

    graph = assert_captured(model, (x(2), x(3), 1.5), [(x(2), x(3), 2.5)])
    assert [given.name for given in graph.inputs] == ["y", "unused", "also_unused"]
    assert_exported(model, (x(2), x(3), 1.5), [(x(2), x(3), 2.5)])


def test_numbers_are_inputs():
    def model(y, factor, shift, negate):
        return y * factor + shift + torch.where(torch.tensor(negate), -y, y)

    args, others = (x(3), 2, 0.5, True), [(x(3), 5, -1.5, False), (x(3), 0, 0.0, True), (x(3), 1, 1.0, False)]
    graph = assert_captured(model, args, others)
    assert [given.name for given in graph.inputs] == ["y", "factor", "shift", "negate"]
    assert_exported(model, args, others)


def test_a_number_as_a_size():
    def model(y, n):
        return y.unsqueeze(0).expand(n, -1) + torch.arange(n).unsqueeze(1)

    assert_captured(model, (x(3), 4), [(x(3), 2), (x(3), 1), (x(3), 0)])


def test_numbers_listed_as_constants_are_baked_in():
    def model(y, factor, shift):
        return y * factor + shift

    graph = assert_captured(model, (x(3), 2, 0.5), [(x(3), 2, 1.5)], constants=["factor"])
    assert [given.name for given in graph.inputs] == ["y", "shift"]


def test_a_number_that_decides_keeps_both_arms():
    def model(y, flag):
        if flag:
            return y + 1
        return y - 1

    assert_captured(model, (x(3), True), [(x(3), False)])
    assert_exported(model, (x(3), True), [(x(3), False)])


def test_the_program_is_called_like_the_model():
    def model(batch, scale=1.0):
        return Scores(batch["a"] * scale, batch["b"].sum())

    args = ({"a": x(2, 3), "b": x(4)},)
    program = assert_exported(model, args, kwargs={"scale": 2.0})
    assert isinstance(program(*args, scale=3.0), Scores)
    assert_same(program(*args, scale=3.0), model(*args, scale=3.0))


def test_names_given_by_the_caller():
    def model(a, b):
        return {"s": a + b, "d": a - b}

    program = assert_exported(model, (x(2), x(2)), input_names=["one"], output_names=["sum", "difference"])
    assert program.input_names == ("one", "b")
    assert program.output_names == ("sum", "difference")


def test_no_tensor_input_at_all():
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(x(3))

        def forward(self):
            return self.w * 2

    assert_captured(Table(), ())
    assert_exported(Table(), ())


# --- transformers' own containers


def cache(length: int):
    transformers = pytest.importorskip("transformers")
    made = transformers.DynamicCache()
    for layer in range(2):
        made.update(x(1, 2, length, 4), x(1, 2, length, 4), layer)
    return made


class Attends(nn.Module):
    def forward(self, y, past):
        keys, values = past.update(y, y * 2, 0)
        past.update(y + 1, y, 1)
        return (keys.sum(2) + values.sum(2)), past


def test_a_dynamic_cache_goes_in_and_comes_out():
    axes = {2: "seen"}
    shapes = {"y": {2: "new"}, "past": [axes] * 4}
    graph = assert_captured(
        Attends(),
        (x(1, 2, 1, 4), cache(3)),
        [(x(1, 2, 5, 4), cache(6)), (x(1, 2, 2, 4), cache(1))],
        dynamic_shapes=shapes,
    )
    assert sum("keys" in given.name for given in graph.inputs) == 2
    assert sum("keys" in given.name for given in graph.outputs) == 2


def test_an_empty_dynamic_cache_is_filled():
    transformers = pytest.importorskip("transformers")

    def model(y):
        past = transformers.DynamicCache()
        past.update(y, y * 2, 0)
        return past

    assert_captured(model, (x(1, 2, 3, 4),), [(x(1, 2, 7, 4),)], dynamic_shapes=({2: FREE},))


def test_a_model_output_of_transformers():
    outputs = pytest.importorskip("transformers.modeling_outputs")

    def model(y):
        return outputs.BaseModelOutputWithPast(last_hidden_state=y * 2, hidden_states=(y, y + 1))

    graph = assert_captured(model, (x(2, 3),), [(x(4, 3),)], dynamic_shapes=({0: FREE},))
    assert graph.outputs[0].name == "last_hidden_state"
    program = assert_exported(model, (x(2, 3),), dynamic_shapes=({0: FREE},))
    assert isinstance(program(x(4, 3)), outputs.BaseModelOutputWithPast)

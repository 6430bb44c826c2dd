"""Any arguments and any results become a list of leaves, and leaves become the same structure again."""

from __future__ import annotations

import argparse
import enum
import json
from collections import OrderedDict, UserDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trueport.load.structures import FoundLeaf, StructureMismatch, flatten
from trueport.load.values import LeafKind

Point = namedtuple("Point", ["x", "y"])


@dataclass(frozen=True)
class Frozen:
    boxes: torch.Tensor
    scale: float
    name: str = "none"


@dataclass(slots=True)
class Slotted:
    a: object
    b: object = None


class Cache:
    """A user's own cache: no dataclass, registered nowhere."""

    def __init__(self, *keys: torch.Tensor) -> None:
        self.keys = list(keys)
        self.seen = 7
        self.owner = torch.nn.Linear(1, 1)


class Mode(enum.IntEnum):
    FAST = 1


def leaves_of(obj: object, root: str = "x") -> list[FoundLeaf]:
    return flatten(obj, root)[0]


def paths(obj: object, root: str = "x") -> list[str]:
    return [leaf.path for leaf in leaves_of(obj, root)]


def names(obj: object, root: str = "x", **options: bool) -> list[str]:
    return [leaf.name for leaf in flatten(obj, root, **options)[0]]


T = torch.ones(2)


class TestNamesAndPaths:
    def test_a_path_is_what_the_user_would_write_and_a_name_is_what_onnx_accepts(self) -> None:
        batch = {"ids": T, "deep": [T, (T,)], 5: T, "a-b": T}
        assert paths(batch, "batch") == [
            'batch["ids"]', 'batch["deep"][0]', 'batch["deep"][1][0]', "batch[5]", 'batch["a-b"]',
        ]  # fmt: skip
        assert names(batch, "batch") == ["batch_ids", "batch_deep_0", "batch_deep_1_0", "batch_5", "batch_a_b"]

    def test_names_are_unique_even_where_keys_look_alike(self) -> None:
        assert names({"a b": T, "a_b": T, "a": {"b": T}}) == ["x_a_b", "x_a_b_2", "x_a_b_3"]

    def test_results_are_named_by_their_keys_alone(self) -> None:
        assert names({"logits": T, "loss": T}, "output", root_in_names=False) == ["logits", "loss"]
        assert names((T, T), "output", root_in_names=False) == ["output_0", "output_1"]
        assert names(T, "output", root_in_names=False) == ["output"]

    def test_fields_of_named_tuples_and_of_torchs_own_results_have_their_names(self) -> None:
        assert paths(Point(T, T)) == ["x.x", "x.y"]
        assert paths(torch.ones(2, 3).max(dim=1)) == ["x.values", "x.indices"]


class TestKinds:
    def test_numbers_are_told_from_constants(self) -> None:
        kinds = {
            leaf.path: leaf.kind
            for leaf in leaves_of([3, 0.5, True, None, "text", Mode.FAST, torch.float16, torch.device("cpu")])
        }
        assert [kind.value for kind in kinds.values()] == ["number"] * 3 + ["constant"] * 5

    def test_a_dataclass_has_real_numbers_and_a_plain_object_has_constants(self) -> None:
        assert [leaf.kind.value for leaf in leaves_of(Frozen(T, 2.0))] == ["tensor", "number", "constant"]
        found = {leaf.path: leaf for leaf in leaves_of(Cache(T))}
        assert list(found) == ["x.keys[0]", "x.seen"]
        assert found["x.seen"].kind is LeafKind.CONSTANT
        assert found["x.seen"].inside_object

    @pytest.mark.parametrize("value", [lambda: 0, object(), torch.nn.Linear(1, 1), T.numpy(), 1j, int, {T}])
    def test_what_a_model_cannot_be_given_is_marked(self, value: object) -> None:
        [leaf] = leaves_of(value)
        assert not leaf.known
        assert leaf.value is value


class TestRebuilding:
    @pytest.mark.parametrize(
        "obj",
        [
            T,
            [T, (T, [])],
            {"a": T, 3: {"b": 1}},
            OrderedDict(b=T, a=T),
            defaultdict(list, k=[T]),
            deque([T, 1], maxlen=3),
            Point(T, {"a": T}),
            torch.Size([2, 3]),
            slice(1, T, None),
            Slotted(T, [1]),
            SimpleNamespace(a=T, b=[T]),
            argparse.Namespace(a=T),
            torch.nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)]),
        ],
        ids=lambda obj: type(obj).__name__,
    )
    def test_what_is_built_is_equal_and_new(self, obj: Any) -> None:
        leaves, structure = flatten(obj)
        built = structure.build([leaf.value for leaf in leaves])
        assert type(built) is type(obj)
        assert all(a is b for a, b in zip(structure.flatten(built), structure.flatten(obj), strict=True))
        assert built is not obj or isinstance(obj, torch.Tensor)

    def test_the_users_object_is_never_written_to(self) -> None:
        cache = Cache(T)
        structure = flatten(cache)[1]
        other = structure.build([torch.zeros(5), 9])
        other.keys.append(T)
        assert cache.keys == [T]
        assert cache.seen == 7
        assert other.seen == 9
        assert other.owner is cache.owner, "what holds no data is kept by reference"

    def test_a_frozen_dataclass_and_a_field_outside_init(self) -> None:
        @dataclass(frozen=True)
        class Made:
            a: torch.Tensor
            b: torch.Tensor = field(init=False)

            def __post_init__(self) -> None:
                object.__setattr__(self, "b", self.a + 1)

        structure = flatten(Made(T))[1]
        built = structure.build([1, 2])
        assert (built.a, built.b) == (1, 2), "the fields are set, not computed again"

    def test_a_dict_like_object_keeps_its_items_and_its_attributes(self) -> None:
        class Batch(UserDict[str, object]):
            pass

        batch = Batch(ids=T)
        batch.encodings = "kept"  # type: ignore[attr-defined]
        leaves, structure = flatten(batch, "batch")
        assert [leaf.path for leaf in leaves] == ['batch["ids"]']
        built = structure.build([1])
        assert built["ids"] == 1
        assert built.encodings == "kept"

    def test_a_default_dict_still_makes_its_defaults(self) -> None:
        built = flatten(defaultdict(list, k=T))[1].build([1])
        assert built["new"] == []

    def test_cycles_are_rebuilt_as_cycles(self) -> None:
        cache = Cache(T)
        cache.me = cache  # type: ignore[attr-defined]
        cache.inside = [cache]  # type: ignore[attr-defined]
        leaves, structure = flatten(cache)
        built = structure.build([leaf.value for leaf in leaves])
        assert built.me is built
        assert built.inside[0] is built

    def test_the_number_of_values_must_fit(self) -> None:
        with pytest.raises(StructureMismatch, match="2 values are needed"):
            flatten([T, T])[1].build([T])


class TestFlatteningAnother:
    @pytest.mark.parametrize(
        ("other", "said"),
        [
            ({"a": T}, r"lacks 'b'"),
            ({"a": T, "b": [T], "c": T}, r"has also 'c'"),
            ({"a": T, "b": [T, T]}, r'x\["b"\]: 1 items are expected here, got 2'),
            ({"a": T, "b": (T,)}, r'x\["b"\]: a list is expected here, got a tuple'),
            ({"a": [T], "b": [T]}, r'x\["a"\]: a single value is expected here, got a list'),
            (T, r"x: a dict is expected here"),
        ],
    )
    def test_a_mismatch_names_the_place(self, other: object, said: str) -> None:
        structure = flatten({"a": T, "b": [T]}, "x")[1]
        with pytest.raises(StructureMismatch, match=said):
            structure.flatten(other)

    def test_the_order_of_a_dict_does_not_matter(self) -> None:
        assert flatten({"a": 1, "b": 2})[1].flatten({"b": 20, "a": 10}) == [10, 20]

    def test_same_as(self) -> None:
        one = flatten({"a": T, "b": [1]})[1]
        assert one.same_as(flatten({"a": torch.zeros(9), "b": [2]})[1])
        assert not one.same_as(flatten({"a": T, "b": (1,)})[1])
        assert not one.same_as(flatten({"a": T, "c": [1]})[1])
        assert not one.same_as(flatten({"a": 1, "b": [1]})[1])


class TestRegistered:
    def test_a_class_registered_with_pytree_is_taken_apart_as_its_author_said(self) -> None:
        class Ragged:
            def __init__(self, values: Any, offsets: Any) -> None:
                self.values, self.offsets = values, offsets
                self.cached = torch.zeros(100)

        torch.utils._pytree.register_pytree_node(
            Ragged, lambda r: ([r.values, r.offsets], None), lambda parts, _: Ragged(*parts)
        )
        leaves, structure = flatten(Ragged(T, T), "r")
        assert [leaf.path for leaf in leaves] == ["r[0]", "r[1]"], "not the cached tensor"
        assert structure.build([1, 2]).offsets == 2


class TestTransformers:
    @pytest.fixture
    def cache(self) -> Any:
        transformers = pytest.importorskip("transformers")
        cache = transformers.DynamicCache()
        for layer in range(2):
            cache.update(torch.zeros(1, 2, 3, 4), torch.ones(1, 2, 3, 4), layer)
        return cache

    def test_a_dynamic_cache_goes_in_and_comes_out(self, cache: Any) -> None:
        leaves, structure = flatten(cache, "past")
        tensors = [leaf for leaf in leaves if leaf.kind is LeafKind.TENSOR]
        assert [leaf.path for leaf in tensors][:2] == ["past.layers[0].keys", "past.layers[0].values"]
        assert [leaf.name for leaf in tensors] == ["past_0_keys", "past_0_values", "past_1_keys", "past_1_values"]
        built = structure.build([leaf.value for leaf in leaves])
        built.update(torch.zeros(1, 2, 1, 4), torch.zeros(1, 2, 1, 4), 0)
        assert built.get_seq_length() == 4
        assert cache.get_seq_length() == 3, "the model wrote to a cache of its own"

    def test_an_empty_cache_is_new_at_each_call(self) -> None:
        transformers = pytest.importorskip("transformers")
        leaves, structure = flatten(transformers.DynamicCache(), "past")
        values = [leaf.value for leaf in leaves]
        structure.build(values).update(torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 4), 0)
        assert structure.build(values).get_seq_length() == 0

    def test_a_model_output(self, cache: Any) -> None:
        from transformers.modeling_outputs import BaseModelOutputWithPast

        output = BaseModelOutputWithPast(last_hidden_state=T, past_key_values=cache)
        leaves, structure = flatten(output, "output", root_in_names=False)
        assert leaves[0].path == "output.last_hidden_state"
        assert [leaf.name for leaf in leaves][:3] == [
            "last_hidden_state",
            "past_key_values_0_keys",
            "past_key_values_0_values",
        ]
        built = structure.build([leaf.value for leaf in leaves])
        assert built["last_hidden_state"] is built.last_hidden_state
        assert built.to_tuple()[0] is T
        assert built.attentions is None


numbers = st.integers() | st.floats(allow_nan=False) | st.booleans()
constants = st.none() | st.text(max_size=3)
keys = st.text(max_size=3) | st.integers(0, 3)


def containers(inside: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return (
        st.lists(inside, max_size=3)
        | st.lists(inside, max_size=3).map(tuple)
        | st.dictionaries(keys, inside, max_size=3)
        | st.tuples(inside, inside).map(lambda pair: Point(*pair))
        | st.tuples(inside, inside).map(lambda pair: Slotted(*pair))
    )


structures = st.recursive(numbers | constants, containers, max_leaves=12)


@given(structures)
def test_flatten_and_build_are_each_others_inverse(obj: object) -> None:
    leaves, structure = flatten(obj)
    built = structure.build([leaf.value for leaf in leaves])
    assert built == obj
    assert flatten(built)[1].same_as(structure)
    assert structure.flatten(built) == [leaf.value for leaf in leaves]


@given(structures)
def test_names_are_unique_and_plain_and_the_description_is_json(obj: object) -> None:
    leaves, structure = flatten(obj)
    found = [leaf.name for leaf in leaves]
    assert len(set(found)) == len(found)
    assert all(name.isidentifier() and name.isascii() for name in found)
    json.dumps(structure.describe())

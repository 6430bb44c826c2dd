"""Tensors that the model owns: each stored once, under the name that `state_dict` knows it by."""

from __future__ import annotations

import torch
from torch import nn

from tests.capture.helpers import assert_captured, assert_exported
from trueport.graph.regions import WeightKind


def x(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes)


def names(graph) -> list[str]:
    return [weight.name for weight in graph.weights]


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.embed(ids))


def test_tied_weights_are_one_weight():
    ids = torch.tensor([[1, 2, 3]])
    graph = assert_captured(Tied(), (ids,), [(torch.tensor([[0, 9, 5]]),)])
    assert names(graph) == ["embed.weight"]
    program = assert_exported(Tied(), (ids,))
    assert list(program.model.graph.initializers) == ["embed.weight"]


def test_a_shared_module_is_stored_once():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.Linear(3, 3)
            self.layers = nn.ModuleList([layer, layer, layer])

        def forward(self, y):
            for layer in self.layers:
                y = layer(y)
            return y

    graph = assert_captured(Shared(), (x(2, 3),), [(x(2, 3),)])
    assert sorted(names(graph)) == ["layers.0.bias", "layers.0.weight"]


def test_weights_that_are_views_of_others_share_no_name():
    class Views(nn.Module):
        def __init__(self):
            super().__init__()
            self.whole = nn.Parameter(x(4, 3))
            self.first = self.whole[:2]
            self.register_buffer("turned", self.whole.detach().t())

        def forward(self, y):
            return y @ self.whole.t(), y @ self.first.t(), y @ self.turned, y @ self.whole.data.t()

    graph = assert_captured(Views(), (x(2, 3),), [(x(2, 3),)])
    assert sorted(names(graph)) == ["first", "turned", "whole"]
    assert_exported(Views(), (x(2, 3),))


def test_weights_are_the_users_own_memory():
    model = nn.Linear(3, 3)
    graph = assert_captured(model, (x(2, 3),))
    assert {weight.tensor.data_ptr() for weight in graph.weights} == {p.data_ptr() for p in model.parameters()}


def test_kinds_of_owned_tensors():
    outside = x(3)

    class Owner(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.Parameter(x(3))
            self.register_buffer("b", x(3))
            self.register_buffer("hidden", x(3), persistent=False)
            self.plain = x(3)
            self.listed = [x(3)]

        def forward(self, y):
            return y + self.p + self.b + self.hidden + self.plain + self.listed[0] + outside + torch.tensor([1.0, 2, 3])

    graph = assert_captured(Owner(), (x(3),), [(x(3),)])
    kinds = {weight.name: weight.kind for weight in graph.weights}
    assert kinds["p"] is WeightKind.PARAMETER
    assert kinds["b"] is kinds["hidden"] is WeightKind.BUFFER
    assert kinds["plain"] is kinds["listed[0]"] is WeightKind.ATTRIBUTE
    assert list(kinds.values()).count(WeightKind.CONSTANT) == 2
    assert_exported(Owner(), (x(3),))


def test_weights_in_lists_of_tensors():
    class Lists(nn.Module):
        def __init__(self):
            super().__init__()
            self.token = nn.Parameter(x(1, 3))
            self.register_buffer("end", x(1, 3))

        def forward(self, y):
            joined = torch.cat([self.token, y, self.end])
            return torch.einsum("ij,kj->ik", [joined, self.end]), torch.stack((self.token, self.end))

    assert_captured(Lists(), (x(2, 3),), [(x(5, 3),)], dynamic_shapes=({0: "n"},))
    assert_exported(Lists(), (x(2, 3),), [(x(5, 3),)], dynamic_shapes=({0: "n"},))


def test_parameter_lists_and_dicts():
    class Holds(nn.Module):
        def __init__(self):
            super().__init__()
            self.several = nn.ParameterList([x(3), x(3)])
            self.by_name = nn.ParameterDict({"a": x(3)})

        def forward(self, y):
            return y * self.several[0] + self.several[1] - self.by_name["a"]

    graph = assert_captured(Holds(), (x(2, 3),))
    assert sorted(names(graph)) == ["by_name.a", "several.0", "several.1"]


def test_a_deep_copy_of_a_layer_has_weights_of_its_own():
    import copy

    class Copies(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(3, 3)
            self.two = copy.deepcopy(self.one)

        def forward(self, y):
            return self.two(self.one(y))

    graph = assert_captured(Copies(), (x(2, 3),))
    assert sorted(names(graph)) == ["one.bias", "one.weight", "two.bias", "two.weight"]


def test_items_of_constant_tensors_are_plain_numbers():
    class Configured(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("depth", torch.tensor(3))
            self.register_buffer("mask", torch.tensor([True, False, True]))

        def forward(self, y):
            for _ in range(self.depth.item()):
                y = y * 2
            return y[:, self.mask], self.mask.nonzero(), self.mask.tolist()

    graph = assert_captured(Configured(), (x(2, 3),), [(x(5, 3),)], dynamic_shapes=({0: "n"},))
    assert sum(str(node.op) == "aten.mul.Tensor" for node in graph.root.nodes) == 3


def test_random_constants_are_not_folded_into_numbers():
    """What depends on randomness is no constant, even where it depends on no input."""

    def model(y):
        return y * torch.rand(()).item()

    from tests.capture.helpers import refusal

    assert [each.code for each in refusal(model, (x(3),)).diagnostics if each.is_error] == ["TP004"]

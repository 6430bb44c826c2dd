"""The model as a whole: names, weights, places, outputs."""

from __future__ import annotations

import io

import torch
from torch import nn

from tests.lower.by_hand import HERE, aten, call, graph, value
from tests.lower.through_onnx import check, model_of
from trueport.lower.lower import lower


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embedding.weight
        self.unused = nn.Linear(4, 4)

    def forward(self, ids):
        return self.head(self.embedding(ids))


def test_a_tied_weight_is_stored_once_and_an_unused_one_not_at_all():
    model = check(Tied(), (torch.randint(0, 10, (2, 3)),))
    assert list(model.graph.initializers) == ["embedding.weight"]


class Slope(nn.Module):
    """The gradient of a linear layer is read from its weight alone."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        return torch.func.vmap(torch.func.grad(lambda row: self.layer(row).sum()))(x) + x


def test_a_weight_that_only_an_unread_node_reads_is_not_stored():
    model = check(Slope(), (torch.randn(2, 4),))
    assert list(model.graph.initializers) == ["layer.weight"]


class Views(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.randn(4, 6))
        self.register_buffer("turned", self.table.t())
        self.register_buffer("part", self.table[1:3, ::2])

    def forward(self, x):
        return x @ self.table, x @ self.turned.t(), self.part + 1


def test_weights_that_are_views_of_others_are_written_in_their_own_order():
    views = Views()
    model = check(views, (torch.randn(2, 4),))
    for name, weight in model.graph.initializers.items():
        tensor = getattr(views, name).contiguous()
        stream = io.BytesIO()
        weight.const_value.tofile(stream)
        assert stream.getvalue() == weight.const_value.tobytes() == tensor.numpy().tobytes()


def test_weights_are_not_copied():
    layer = nn.Linear(4, 3).bfloat16()
    model = model_of(layer, (torch.randn(2, 4).bfloat16(),))
    weight = model.graph.initializers["weight"].const_value
    assert weight.raw.data_ptr() == layer.weight.data_ptr()
    assert weight.numpy().dtype.name == "bfloat16"


def test_inputs_and_outputs_have_the_users_names_and_sizes():
    def forward(image, scale):
        return {"flat": image.reshape(-1), "scaled": image * scale}

    model = model_of(forward, (torch.randn(4, 3), torch.tensor(2.0)), {0: {0: "batch"}})
    assert [str(x.shape) for x in model.graph.inputs] == ["[batch,3]", "[]"]
    assert [x.name for x in model.graph.inputs] == ["image", "scale"]
    assert [x.name for x in model.graph.outputs] == ["flat", "scaled"]
    assert [str(x.shape) for x in model.graph.outputs] == ["[3*batch]", "[batch,3]"]


def test_every_node_says_where_it_comes_from():
    x, out = value(3), value(3)
    model = lower(graph({"x": x}, [call(aten.gelu.default, x, out=out)], [out])).model
    (node,) = model.graph
    assert node.metadata_props == {
        "trueport.op": "aten.gelu.default",
        "trueport.source": str(HERE.where),
        "trueport.module": "layers.0",
        "pkg.torch.onnx.stack_trace": 'File "model.py", line 7, in forward',
    }


def test_a_name_of_ours_never_takes_one_of_the_users():
    x, a, b = value(3), value(3), value(3)
    nodes = [call(aten.relu.default, x, out=a), call(aten.exp.default, a, out=b)]
    model = lower(graph({"Relu_1": x}, nodes, [b])).model
    names = [*(i.name for i in model.graph.inputs), *(out.name for node in model.graph for out in node.outputs)]
    assert len(set(names)) == len(names)


def test_outputs_that_nothing_computes():
    weight = nn.Parameter(torch.randn(3))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = weight

        def forward(self, x):
            return x, self.weight, self.weight, 4, 0.5, None, "text"

    check(Model(), (torch.randn(2),))

"""Operators of the user's own: translated in several ways, or named at their lines with what is to be filled in."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import trueport

LIBRARY = torch.library.Library("tp_shop", "FRAGMENT")
LIBRARY.define("unknown_sizes(Tensor x) -> Tensor")
LIBRARY.impl("unknown_sizes", lambda x: x * 3, "CPU")
LIBRARY.define("composite(Tensor x) -> Tensor")
LIBRARY.impl("composite", lambda x: x.relu() + 1, "CompositeImplicitAutograd")


@torch.library.custom_op("tp_shop::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


@torch.library.custom_op("tp_shop::both", mutates_args=())
def both(x: torch.Tensor, k: int, s: float = 0.5) -> tuple[torch.Tensor, torch.Tensor]:
    return x * k, x + s


@both.register_fake
def _(x, k, s=0.5):
    return torch.empty_like(x), torch.empty_like(x)


@torch.library.custom_op("tp_shop::no_fake", mutates_args=())
def no_fake(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@torch.library.custom_op("tp_shop::writes", mutates_args=("x",))
def writes(x: torch.Tensor) -> None:
    x.mul_(2)


def doubled(op, x):
    return op.Mul(x, 2.0)


KEYS = {
    "an overload": torch.ops.tp_shop.twice.default,
    "the operator": torch.ops.tp_shop.twice,
    "the decorated function": twice,
    "the name": "tp_shop::twice",
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_translation_may_be_given_under(key):
    shapes = ({0: torch.export.Dim.DYNAMIC},)
    program = trueport.export(
        lambda x: twice(x) + 1, (torch.randn(3),), dynamic_shapes=shapes, custom_translation_table={key: doubled}
    )
    x = torch.randn(5)
    torch.testing.assert_close(program(x), 2 * x + 1)


def test_a_key_that_is_no_operator():
    with pytest.raises(trueport.UsageError, match="no operator"):
        trueport.export(nn.ReLU(), (torch.randn(3),), custom_translation_table={3: doubled})


def test_an_operator_that_torch_can_take_apart_needs_no_translation():
    assert trueport.check(torch.ops.tp_shop.composite, (torch.randn(3),)).verified


def test_every_operator_is_named_at_its_line_with_a_stub_that_python_takes():
    def forward(x):
        y = twice(x)
        a, b = both(y, 3)
        return a + b

    found = trueport.check(forward, (torch.randn(3),)).errors
    first = forward.__code__.co_firstlineno
    assert [(each.code, each.where.line - first) for each in found] == [("TP401", 1), ("TP401", 2)]
    stub = found[1].fix.partition("\n")[2]
    assert stub.startswith('@trueport.op("tp_shop::both")\ndef both(op, x, k, s=0.5):\n')
    compile(stub, "stub", "exec")


@pytest.mark.parametrize("operator", [no_fake, torch.ops.tp_shop.unknown_sizes], ids=["custom_op", "library"])
def test_an_operator_without_a_fake_kernel_is_told_how_to_get_one(operator):
    (found,) = trueport.check(lambda x: operator(x), (torch.randn(3),)).errors
    assert found.code == "TP401"
    assert '@torch.library.register_fake("tp_shop::' in found.fix


def test_an_operator_that_writes_into_its_arguments():
    def forward(x):
        y = x.clone()
        writes(y)
        return y

    (found,) = trueport.check(forward, (torch.randn(3),)).errors
    assert "writes into its arguments" in found.message
    assert found.where.line == forward.__code__.co_firstlineno + 2


def test_an_operator_of_another_domain_is_for_a_runtime_that_has_it():
    table = {twice: lambda op, x: op.custom("shop.domain", "Twice", x)}
    (found,) = trueport.check(lambda x: twice(x), (torch.randn(3),), custom_translation_table=table).errors
    assert (found.code, "verify=False" in found.fix) == ("TP801", True)
    program = trueport.export(lambda x: twice(x), (torch.randn(3),), custom_translation_table=table, verify=False)
    assert program.model.graph.opset_imports["shop.domain"] == 1


REFUSED = {
    "nested": lambda x: torch.nested.nested_tensor([x, x * 2]).to_padded_tensor(0.0),
    "sparse": lambda x: torch.sparse.mm(x.to_sparse(), x.t()),
}


@pytest.mark.parametrize(("layout", "forward"), REFUSED.items(), ids=REFUSED)
def test_tensors_that_onnx_has_no_form_for(layout, forward):
    found = trueport.check(forward, (torch.randn(3, 2),)).errors[0]
    assert (found.code, layout in found.message) == ("TP401", True)
    assert found.where.file == __file__


def test_a_sparse_weight_is_named():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("edges", torch.eye(3).to_sparse())

        def forward(self, x):
            return self.edges @ x

    (found,) = trueport.check(Net(), (torch.randn(3, 2),)).errors
    assert (found.code, "edges" in found.message) == ("TP201", True)

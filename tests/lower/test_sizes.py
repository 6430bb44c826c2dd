"""Sizes that differ between runs are computed in the model as Python computes them."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lower.through_onnx import check, model_of
from trueport.graph.regions import Number
from trueport.lower.builder import Builder
from trueport.lower.tensor import Tensor
from trueport.torch_internals import size_functions

F = size_functions()
A, B, C = sympy.symbols("a b c", integer=True)


def evaluate(kind: type, expr: Any, **values: int) -> Any:
    """The value that ONNX Runtime computes for an expression over 0-d inputs."""
    feed = {name: np.array(values.get(name, 1), dtype=np.int64) for name in "abc"}
    return session_of(kind, expr).run(None, feed)[0].item()


@functools.cache
def session_of(kind: type, expr: Any) -> onnxruntime.InferenceSession:
    op = Builder(20)
    inputs = []
    for symbol in (A, B, C):
        x = Tensor(op, symbol.name, ir.DataType.INT64, ())
        op.sizes.bind_number(Number(symbol, int), x)
        inputs.append(x)
    out = op.Identity(op.size(Number(expr, kind)))
    out.settle(())
    out.name = "out"
    graph = ir.Graph(inputs, [out], nodes=op.scope.nodes, opset_imports={"": 20}, name="sizes")
    proto = ir.to_proto(ir.Model(graph, ir_version=10))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(proto.SerializeToString(), options)


RULES = {
    "add, subtract, multiply": (int, A - 2 * B + A * C - 7, lambda a, b, c: a - 2 * b + a * c - 7),
    "negative": (int, -A, lambda a, b, c: -a),
    "square": (int, A**2, lambda a, b, c: a**2),
    "floor division": (int, F["FloorDiv"](A, B), lambda a, b, c: a // b),
    "modulo": (int, F["PythonMod"](A, B), lambda a, b, c: a % b),
    "ceiling division": (int, F["CeilDiv"](A, sympy.Integer(3)), lambda a, b, c: -(-a // 3)),
    "largest": (int, F["Max"](A, B, C), lambda a, b, c: max(a, b, c)),
    "smallest": (int, F["Min"](A, B, C), lambda a, b, c: min(a, b, c)),
    "absolute": (int, sympy.Abs(A), lambda a, b, c: abs(a)),
    "true division": (float, F["IntTrueDiv"](A, B), lambda a, b, c: a / b),
    "float": (float, F["ToFloat"](A), lambda a, b, c: float(a)),
    "rounded up": (int, F["CeilToInt"](F["IntTrueDiv"](A, B)), lambda a, b, c: math.ceil(a / b)),
    "rounded down": (int, F["FloorToInt"](F["IntTrueDiv"](A, B)), lambda a, b, c: math.floor(a / b)),
    "cut off": (int, F["TruncToInt"](F["IntTrueDiv"](A, B)), lambda a, b, c: math.trunc(a / b)),
    "rounded": (int, F["RoundToInt"](F["IntTrueDiv"](A, sympy.Integer(2))), lambda a, b, c: round(a / 2)),
    "float product": (float, F["ToFloat"](A) * 0.75, lambda a, b, c: a * 0.75),
    "float division": (float, F["FloatTrueDiv"](F["ToFloat"](A), 2.5), lambda a, b, c: a / 2.5),
    "less": (bool, A < B, lambda a, b, c: a < b),
    "equal": (bool, sympy.Eq(A, B), lambda a, b, c: a == b),
    "not equal": (bool, sympy.Ne(A, B), lambda a, b, c: a != b),
    "at least": (bool, A >= B, lambda a, b, c: a >= b),
    "and, or": (bool, (A < B) & ((A < C) | sympy.Eq(B, C)), lambda a, b, c: a < b and (a < c or b == c)),
    "not": (bool, sympy.Not((A < B) & (A < C)), lambda a, b, c: not (a < b and a < c)),
    "a choice": (int, sympy.Piecewise((A, A < B), (C, True)), lambda a, b, c: a if a < b else c),
    "nested": (int, F["FloorDiv"](A + 3, B) * C - F["PythonMod"](A, C), lambda a, b, c: (a + 3) // b * c - a % c),
}

numbers = st.integers(-50, 50)
divisors = numbers.filter(bool)


@pytest.mark.parametrize(("kind", "expr", "python"), RULES.values(), ids=RULES)
@settings(max_examples=40, deadline=None)
@given(a=numbers, b=divisors, c=divisors)
def test_as_python_computes_it(kind, expr, python, a, b, c):
    assert evaluate(kind, expr, a=a, b=b, c=c) == kind(python(a, b, c))


UNARY = ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "atan", "exp", "log", "asinh", "log2")


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_a_size(name):
    expr = F[f"OpaqueUnaryFn_{name}"](F["IntTrueDiv"](A, sympy.Integer(4)))
    assert evaluate(float, expr, a=3) == pytest.approx(getattr(math, name)(0.75), rel=1e-6)


def test_a_division_of_sizes_is_one_node_because_sizes_are_not_negative():
    model = model_of(lambda x: x.reshape(-1)[: x.shape[0] // 2], (torch.randn(4, 3),), {0: {0: "batch"}})
    assert [node.op_type for node in model.graph if node.op_type in ("Mod", "Div")] == ["Div"]


def test_an_axis_of_twice_the_size_and_one_tells_the_size():
    half = torch.export.Dim("half")
    model = model_of(lambda x: torch.arange((x.shape[0] - 1) // 2), (torch.randn(7),), {0: {0: 2 * half + 1}})
    assert str(model.graph.inputs[0].shape) == "[2*half + 1]"
    free = {0: {0: 2 * half + 1}}
    check(lambda x: torch.arange((x.shape[0] - 1) // 2), (torch.randn(7),), (torch.randn(3),), free=free)


def test_each_size_is_asked_for_once():
    def forward(x):
        return torch.zeros(x.shape[0] * 2), torch.ones(x.shape[0] * 2), torch.full((x.shape[0],), 3.0)

    model = model_of(forward, (torch.randn(4, 3),), {0: {0: "batch"}})
    operators = [node.op_type for node in model.graph]
    assert operators.count("Shape") == 1
    assert operators.count("Mul") == 1


RESHAPES = {
    "a size that stays on its axis is copied": (lambda x: x.reshape(x.shape[0], 3, 4), [0, 3, 4]),
    "one size is left to be found": (lambda x: x.reshape(-1, 6), [-1, 6]),
}


@pytest.mark.parametrize(("reshape", "target"), RESHAPES.values(), ids=RESHAPES)
def test_the_target_of_a_reshape_is_a_constant(reshape, target):
    model = check(reshape, (torch.randn(2, 12),), (torch.randn(5, 12),), free={0: {0: "batch"}})
    (node,) = [node for node in model.graph if node.op_type == "Reshape"]
    assert ir.convenience.get_const_tensor(node.inputs[1]).numpy().tolist() == target


def test_nothing_is_left_to_be_found_where_the_tensor_may_be_empty():
    def forward(x):
        return x.reshape(x.shape[1], x.shape[0], 2)

    check(forward, (torch.randn(2, 3, 2),), (torch.randn(0, 3, 2),), free={0: {0: "batch", 1: "time"}})

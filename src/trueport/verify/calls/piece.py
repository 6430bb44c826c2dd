"""A call as a graph of its own, lowered as in the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sympy
import torch

from trueport.graph.regions import Graph, GraphInput, GraphOutput, Number, Region, Value, Weight, WeightKind
from trueport.load.job import FreeSize
from trueport.verify.calls.call import Call, is_fixed
from trueport.verify.calls.trials import Sizes, Trial
from trueport.verify.replay import Replay


def eager(call: Call, trial: Trial) -> Sequence[Any]:
    """What eager gives. Raises what it raises."""
    return eager_on(call, trial.sizes, trial.tensors)


def eager_on(call: Call, sizes: Sizes, tensors: Sequence[torch.Tensor]) -> Sequence[Any]:
    run = Replay()
    run.tensors |= {operand.value: tensor for operand, tensor in zip(call.operands, tensors, strict=True)}
    run.symbols |= {symbol: sympy.sympify(size) for symbol, size in sizes.items()}
    with torch.no_grad():
        return [as_tensor(result) for result in run.node(call.node)]


def as_tensor(result: Any) -> Any:
    """A Python number as the tensor that it is in ONNX."""
    if isinstance(result, bool | int | float):
        kind = torch.bool if isinstance(result, bool) else torch.int64 if isinstance(result, int) else torch.float64
        return torch.tensor(result, dtype=kind)
    return result


def graph_of(call: Call, trial: Trial, results: Sequence[Any], whole: Graph) -> Graph:
    """The call with the fixed sizes of a trial; `results` are what eager gave there."""
    fixed = {symbol: trial.sizes[symbol] for symbol in call.fixed}
    values = {operand.value: _sized(operand.value, fixed) for operand in call.operands}
    outputs = tuple(_output(out, got) for out, got in zip(call.node.outputs, results, strict=True))
    node = replace(
        call.node,
        args=_rebound(call.node.args, values),
        kwargs={name: _rebound(value, values) for name, value in call.node.kwargs.items()},
        outputs=outputs,
    )
    inputs = [
        GraphInput(f"operand_{at}", values[operand.value])
        for at, operand in enumerate(call.operands)
        if not operand.weight
    ]
    on_axes = {size for given in inputs if isinstance(given.value, Value) for size in given.value.shape}
    for symbol in call.free:
        if symbol not in on_axes:
            inputs.append(GraphInput(str(symbol), Number(symbol, int if symbol.is_integer else float)))
    weights = tuple(
        Weight(f"weight_{at}", WeightKind.BUFFER, values[operand.value], trial.tensors[at])
        for at, operand in enumerate(call.operands)
        if operand.weight
    )
    wanted = [
        GraphOutput(f"result_{at}", output)
        for at, (output, used) in enumerate(zip(outputs, call.results, strict=True))
        if used is not None
    ]
    return replace(
        whole,
        inputs=tuple(inputs),
        outputs=tuple(wanted),
        root=Region([given.value for given in inputs], [node], [out.value for out in wanted]),
        weights=weights,
        size_symbols={symbol: FreeSize(str(symbol), least) for symbol, least in call.free.items() if symbol in on_axes},
        number_symbols={},
        examples={},
        assumptions=(),
        state={},
        lifted={},
    )


def feeds_of(call: Call, trial: Trial) -> dict[str, Any]:
    """What the piece is given, by name."""
    tensors = {
        f"operand_{at}": tensor
        for at, (operand, tensor) in enumerate(zip(call.operands, trial.tensors, strict=True))
        if not operand.weight
    }
    return {**{str(symbol): trial.sizes[symbol] for symbol in call.free}, **tensors}


def _sized(value: Value, fixed: Mapping[sympy.Symbol, Any]) -> Value:
    return Value(value.dtype, tuple(int(fixed[size]) if size in fixed else size for size in value.shape))


def _output(output: Any, got: Any) -> Any:
    """With the sizes that eager gave, where they are the same in every run of the piece."""
    if not isinstance(output, Value) or not isinstance(got, torch.Tensor):
        return output
    sizes = [
        size if isinstance(size, sympy.Expr) and not is_fixed(size) else int(seen)
        for size, seen in zip(output.shape, got.shape, strict=True)
    ]
    return Value(output.dtype, tuple(sizes))


def _rebound(argument: Any, values: Mapping[Value, Value]) -> Any:
    if isinstance(argument, Value):
        return values[argument]
    if isinstance(argument, tuple | list):
        return type(argument)(_rebound(item, values) for item in argument)
    return argument

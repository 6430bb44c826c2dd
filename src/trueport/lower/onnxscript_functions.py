"""Calls translations that a user wrote with onnxscript, or took from its torchlib. Our own need none of it.

Their bodies call `op.Add(...)` of an onnxscript opset, which asks the current evaluator to do it; ours appends the
node to our builder. Arguments are sorted by the function's signature into ONNX inputs (Python numbers become constants
of their siblings' dtype) and attributes (which stay Python values).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import onnxscript
import torch
from onnxscript import evaluator
from onnxscript.values import Op, TracedOnnxFunction

from trueport.graph.regions import Number
from trueport.lower.builder import Builder
from trueport.lower.dtypes import onnx_dtype
from trueport.lower.tensor import Operand, Tensor

_TORCHLIB_DOMAIN = "pkg.onnxscript.torch_lib"


def call(op: Builder, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run a function of onnxscript's, with or without a signature, on our values."""
    plain = [_plain(op, arg) for arg in args]
    named = {key: _plain(op, arg) for key, arg in kwargs.items()}
    with evaluator.default_as(OnnxscriptRecorder(op)):
        if getattr(function, "op_signature", None) is None:
            return function(*plain, **named)
        return _call_with_signature(op, function, plain, named)


class OnnxscriptRecorder(evaluator.Evaluator):
    """Appends to our builder what onnxscript would have run."""

    def __init__(self, op: Builder) -> None:
        self._op = op

    def eval_op(self, op: Op, args: Sequence[Operand], kwargs: Mapping[str, Any]) -> Tensor | tuple[Tensor, ...]:
        if op.opset.domain:
            return self._op.custom(op.opset.domain, op.name, *args, version=op.opset.version, **kwargs)
        if op.name == "Constant":
            (content,) = [value for value in kwargs.values() if value is not None]
            content = content.value if isinstance(content, ir.Attr) else content
            return self._op.const(content.numpy() if isinstance(content, ir.TensorProtocol) else content)
        signature = self._op.signature(op.name)
        outputs = self._op.emit(signature, args, kwargs, _output_count(op.name, signature.outputs, args, kwargs))
        return outputs[0] if len(outputs) == 1 else outputs

    def eval_function(self, function: Any, args: Sequence[Operand], kwargs: Mapping[str, Any]) -> Any:
        return _call_with_signature(self._op, function, args, kwargs)


def _output_count(name: str, outputs: Sequence[Any], args: Sequence[Operand], kwargs: Mapping[str, Any]) -> int:
    if name == "BatchNormalization" and not kwargs.get("training_mode"):
        return 1
    if name == "Split":
        if (count := kwargs.get("num_outputs")) is not None:
            return int(count)
        return len(args[1]) if isinstance(args[1], list | tuple) else int(args[1].shape[0])
    if name in ("Dropout", "MaxPool"):
        return 1 if name == "Dropout" else 2
    return len(outputs)


def _plain(op: Builder, arg: Any) -> Any:
    """What onnxscript's functions expect: dtypes as numbers, sizes as tensors, devices and layouts as text."""
    if isinstance(arg, torch.dtype):
        return int(onnx_dtype(arg))
    if isinstance(arg, Number):
        return op.size(arg)
    if isinstance(arg, list | tuple):
        return [_plain(op, item) for item in arg]
    if isinstance(arg, torch.device | torch.layout | torch.memory_format):
        return str(arg)
    return arg


def _call_with_signature(op: Builder, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    inputs, attributes = _sorted(function.op_signature, args, kwargs)
    if isinstance(function, onnxscript.OnnxFunction) and function.function_ir.domain != _TORCHLIB_DOMAIN:
        return _function_node(op, function, inputs, attributes)
    body = function.func if isinstance(function, TracedOnnxFunction) else function.function
    values = _with_constants(op, function.op_signature, inputs)
    return body(**values, **attributes)


def _sorted(
    signature: ir.schemas.OpSignature, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and attributes by name. Arguments that the function does not know (device, layout) are left out."""
    inputs: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    rest = list(args)
    for param in signature.params:
        if isinstance(param, ir.schemas.Parameter):
            if param.variadic:
                inputs[param.name], rest = rest, []
            else:
                inputs[param.name] = rest.pop(0) if rest else kwargs.get(param.name)
            continue
        value = rest.pop(0) if rest else kwargs.get(param.name)
        if value is None and param.default is not None:
            value = param.default.value
        if isinstance(value, int) and param.type == ir.AttributeType.FLOAT:
            value = float(value)
        if value is not None:
            attributes[param.name] = value
    return inputs, attributes


def _with_constants(op: Builder, signature: ir.schemas.OpSignature, inputs: dict[str, Any]) -> dict[str, Any]:
    """Python numbers among the inputs, as constants in the dtype of the tensors that share their type."""
    params = {param.name: param for param in signature.params if isinstance(param, ir.schemas.Parameter)}
    dtypes = {params[name].type_constraint.name: x.dtype for name, x in inputs.items() if isinstance(x, Tensor)}
    ready: dict[str, Any] = {}
    for name, x in inputs.items():
        if isinstance(x, bool | int | float):
            constraint = params[name].type_constraint
            only = next(iter(constraint.allowed_types)) if len(constraint.allowed_types) == 1 else None
            x = op.const(x, dtypes.get(constraint.name) or (only.dtype if only else None))
        ready[name] = x
    return ready


def _function_node(op: Builder, function: Any, inputs: dict[str, Any], attributes: dict[str, Any]) -> Any:
    """A function of the user's stays a function of the model, called by one node."""
    definition: ir.Function = function.function_ir
    op.functions[definition.identifier()] = definition
    count = len(definition.outputs)
    outputs = op.foreign(definition.domain, definition.name, list(inputs.values()), attributes, count)
    return outputs[0] if len(outputs) == 1 else outputs

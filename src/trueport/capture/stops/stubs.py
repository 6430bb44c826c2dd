"""What a user has to fill in so that an operator of their own can be exported."""

from __future__ import annotations

from typing import Any

from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp401_unsupported_operator import UnsupportedOperator
from trueport.source import Place
from trueport.torch_internals import OpOverload
from trueport.torch_internals.messages import is_quantised


def untranslated(op: OpOverload, place: Place) -> Diagnostic:
    """A call of an operator that nobody can translate."""
    instead = (
        "leave this layer as it was before the conversion"
        if is_quantised(op.name())
        else "write it with other operators"
    )
    return UnsupportedOperator(
        message=f"`{op.name()}` has no translation to ONNX",
        place=place,
        label=f"calls {op.name()}",
        fix=f"{instead}, or translate it:\n{translation_stub(op)}",
    )


def translation_stub(op: OpOverload) -> str:
    """A translation with the operator's own arguments, to be filled in."""
    schema = op._schema
    results = ["a tensor" if str(each.type) == "Tensor" else str(each.type) for each in schema.returns]
    gives = results[0] if len(results) == 1 else f"a tuple of {len(results)}"
    return "\n".join(
        (
            f'@trueport.op("{op.name()}")',
            f"def {schema.name.rpartition('::')[2]}(op, {_parameters(schema)}):",
            f"    return ...  # {gives}, made of ONNX operators: op.Add({schema.arguments[0].name}, 1)",
        )
    )


def fake_kernel_stub(name: str) -> str:
    """What tells torch the sizes of an operator's results."""
    return "\n".join(
        (
            f'@torch.library.register_fake("{name}")',
            "def _(x, ...):  # the operator's own arguments",
            "    return torch.empty_like(x)  # of the size and the dtype that it returns",
        )
    )


def _parameters(schema: Any) -> str:
    found, star = [], False
    for argument in schema.arguments:
        if argument.kwarg_only and not star:
            star = True
            found.append("*")
        default = f"={argument.default_value!r}" if argument.has_default_value() else ""
        found.append(f"{argument.name}{default}")
    return ", ".join(found)

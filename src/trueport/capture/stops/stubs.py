"""What a user has to fill in so that an operator of their own can be exported."""

from __future__ import annotations

from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp401_unsupported_operator import UnsupportedOperator
from trueport.source import Place
from trueport.torch_internals import OpOverload
from trueport.torch_internals.messages import is_quantised
from trueport.torch_internals.schemas import arguments_of, result_types


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
    results = ["a tensor" if each == "Tensor" else each for each in result_types(op)]
    gives = results[0] if len(results) == 1 else f"a tuple of {len(results)}"
    return "\n".join(
        (
            f'@trueport.op("{op.name()}")',
            f"def {op.overloadpacket.__name__}(op, {_parameters(op)}):",
            f"    return ...  # {gives}, made of ONNX operators: op.Add({arguments_of(op)[0].name}, 1)",
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


def _parameters(op: OpOverload) -> str:
    found, star = [], False
    for argument in arguments_of(op):
        if argument.keyword_only and not star:
            star = True
            found.append("*")
        default = f"={argument.default!r}" if argument.has_default else ""
        found.append(f"{argument.name}{default}")
    return ", ".join(found)

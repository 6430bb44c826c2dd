"""Tensors of two dtypes that eager refuses to compute with."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal
from trueport.fix.edit import Edit
from trueport.fix.syntax import atom, called, dotted
from trueport.source.scene import NamedValue

_WIDTH = {"torch.float64": 4, "torch.float32": 3, "torch.bfloat16": 2, "torch.float16": 2}
_MIXES = frozenset(
    "matmul mm bmm mv dot addmm baddbmm linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d einsum "
    "scaled_dot_product_attention bilinear layer_norm".split()
)


class CastAtTheCall(Fix):
    """`self.fc(x)` becomes `self.fc(x.to(self.fc.weight.dtype))`; `a @ b` becomes `a.to(b.dtype) @ b`.

    Eager itself refuses the call, so there is no answer from before to be kept. A layer gets its argument in the dtype
    of its weights; an embedding, and an index, gets whole numbers; of two tensors the one that is no weight is cast, or
    else the narrower one.
    """

    codes = ("TP002",)

    def proposals(self, case: Case) -> Iterator[Proposal]:
        if case.facts.get("about") not in ("dtypes", "indices"):
            return
        yield from _spec(case)
        for call in case.on_the_line(ast.Call):
            cast = _for_a_layer(case, call)
            if cast is not None and call.args:
                text = atom(case.source, call.args[0])
                yield Proposal(f"cast at the call: {text}{cast}", (case.source.replace(call.args[0], text + cast),))
        edits = tuple(_between_operands(case))
        if edits:
            yield Proposal(f"cast at the operation: {edits[0].text}", edits)
        indices = tuple(_indices(case))
        if indices:
            yield Proposal(f"index with whole numbers: {indices[0].text}", indices)


def _spec(case: Case) -> Iterator[Proposal]:
    """An input that is looked up, and whose dtype nobody gave: the command means whole numbers."""
    name, dtype = case.facts.get("input", ""), case.facts.get("dtype", "")
    if dtype != "torch.int64":
        return
    for text in case.command.inputs:
        if re.fullmatch(rf"{re.escape(name)}:[0-9A-Zx_a-z]+", text) and text.count(":") == 1:
            rows = case.facts.get("rows")
            new = f"{text}:i64" + (f"@0..{int(rows) - 1}" if rows else "")
            yield Proposal(f"give whole numbers: -i {new}", command=case.command.with_input(text, new))


def _for_a_layer(case: Case, call: ast.Call) -> str | None:
    """The cast for a call of the layer that refused, or of a module that it is part of."""
    path, dtype = case.facts.get("module"), case.facts.get("dtype")
    if not path or not dtype:
        return None
    func = case.source.text_of(call.func)
    own = re.sub(r"\[(\d+)\]", r".\1", func)
    if not own.startswith("self."):
        return None
    name = own.removeprefix("self.")
    if dtype == "torch.int64":
        return ".long()" if f".{path}".endswith(f".{name}") else None
    if f".{path}".endswith(f".{name}"):
        return f".to({func}.weight.dtype)"
    return f".to(next({func}.parameters()).dtype)" if f".{name}." in f".{path}" else None


def _between_operands(case: Case) -> Iterator[Edit]:
    """Casts for a product of tensors whose dtypes were seen to differ."""
    pairs = [(node.left, node.right) for node in case.on_the_line(ast.BinOp) if isinstance(node.op, ast.MatMult)]
    groups: list[list[ast.expr]] = [list(pair) for pair in pairs]
    groups += [list(call.args) for call in case.on_the_line(ast.Call) if called(call) in _MIXES]
    for nodes in groups:
        known = [(node, held[0]) for node in nodes if (held := case.names.get(dotted(node))) and _is_float(held[0])]
        if len({held.dtype for _, held in known}) < 2:
            continue
        keeper, kept = max(known, key=lambda pair: (dotted(pair[0]).startswith("self."), _WIDTH[pair[1].dtype]))
        for node, other in known:
            if other.dtype != kept.dtype:
                yield case.source.replace(node, f"{dotted(node)}.to({dotted(keeper)}.dtype)")


def _indices(case: Case) -> Iterator[Edit]:
    if case.facts.get("about") != "indices":
        return
    for node in case.on_the_line(ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in parts:
            held = case.names.get(dotted(part), ())
            if held and _is_float(held[0]):
                yield case.source.replace(part, f"{dotted(part)}.long()")


def _is_float(held: NamedValue) -> bool:
    return held.dtype in _WIDTH

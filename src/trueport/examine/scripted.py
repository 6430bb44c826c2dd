"""Branches and loops inside TorchScript: torch's own interpreter decides them, where no trace can keep both ways.

A scripted module whose Python is known is traced as that. One that was loaded or frozen is traced as it is as long as
nothing in it decides by a tensor's value; where something does, the graph would silently hold the way that the trace
happened to take.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch

from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp107_cannot_rewrite import CannotRewrite
from trueport.load.roots import source_roots
from trueport.load.unscripted import in_python
from trueport.source import Place, SourceRoots, Where

_DECIDING = {"prim::If": "branch", "prim::Loop": "loop"}
_ABOUT_KINDS = frozenset(
    "aten::size aten::sym_size aten::dim aten::len aten::numel aten::stride aten::is_floating_point aten::is_complex"
    " aten::__isnot__ aten::__is__ aten::__contains__ aten::is_contiguous aten::__interpolate aten::format".split()
)
"""What a tensor is asked for that is no value of it. So is every `prim::` (its dtype, its device)."""


def scripted_decisions(model: torch.nn.Module) -> Iterator[Diagnostic]:
    """The first branch or loop of each scripted part of the model that a tensor's value decides."""
    inside: set[int] = set()
    for path, module in model.named_modules():
        if not isinstance(module, torch.jit.ScriptModule) or id(module) in inside:
            continue
        inside.update(id(part) for part in module.modules())
        if in_python(module) is not None:
            continue
        graph = module.inlined_graph  # its nodes live as long as it does
        node = _first_decision(graph, set())
        if node is not None:
            who, what = f"{path} is" if path else "the model is", _DECIDING[node.kind()]
            yield CannotRewrite(
                message=f"{who} TorchScript, and a value decides a {what} in it that no trace can follow",
                place=_place(node, path, source_roots(model)),
                label="decided by torch's interpreter",
                fix="export the module as it is before torch.jit.script",
            )


def _first_decision(block: Any, known: set[str]) -> Any:
    """`known` holds the plain numbers that come from values of tensors."""
    for node in block.nodes():
        inputs = list(node.inputs())
        by_value = any(value.debugName() in known for value in inputs)
        if node.kind() in _DECIDING and by_value and not _only_raises(node):
            return node
        for inner in node.blocks():
            found = _first_decision(inner, known)
            if found is not None:
                return found
            # `while` has its test at the end of its body.
            if node.kind() == "prim::Loop" and next(iter(inner.outputs())).debugName() in known:
                return node
            by_value = by_value or any(value.debugName() in known for value in inner.outputs())
        plain = node.kind() in _ABOUT_KINDS or node.kind().startswith("prim::")
        asks = not plain and any(_is_tensor(value) for value in inputs)
        if by_value or asks:
            known.update(value.debugName() for value in node.outputs() if not _holds_tensors(value))
    return None


def _is_tensor(value: Any) -> bool:
    return bool(value.type().kind() == "TensorType")


def _holds_tensors(value: Any) -> bool:
    return "Tensor" in str(value.type())


def _only_raises(node: Any) -> bool:
    """A check of the arguments: one arm raises, and the other does nothing."""
    blocks = [list(block.nodes()) for block in node.blocks()]
    raising = [any(inner.kind() == "prim::RaiseException" for inner in nodes) for nodes in blocks]
    return any(raising) and all(is_raising or not nodes for is_raising, nodes in zip(raising, blocks, strict=True))


def _place(node: Any, path: str, roots: SourceRoots) -> Place | None:
    """As the script notes it, which may have been loaded from a file that anybody wrote."""
    found = re.search(r'File "([^"]+)", line (\d+)', node.sourceRange())
    return roots.read(Place((Where(found[1], int(found[2]), "forward", readable=False),), path)) if found else None

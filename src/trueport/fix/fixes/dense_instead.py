"""A sparse tensor on the way."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal
from trueport.fix.edit import Edit
from trueport.fix.syntax import dotted, imported_as

_THERE_AND_BACK = frozenset({"to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_dense", "coalesce"})
_DENSE = frozenset({"mm", "sum", "softmax", "log_softmax", "addmm"})


class DenseInstead(Fix):
    """`torch.sparse.mm(a.to_sparse(), b)` becomes `torch.mm(a, b)`.

    ONNX has no sparse tensors. What is computed is the same; memory is not saved.
    """

    codes = ("TP401",)

    def proposals(self, case: Case) -> Iterator[Proposal]:
        torch = imported_as(case.source, "torch")
        if case.function is None or not torch:
            return
        edits: list[Edit] = []
        for node in ast.walk(case.function):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            head, _, name = dotted(node.func).rpartition(".")
            if node.func.attr in _THERE_AND_BACK:
                start, end = case.source.span(node.func.value)[1], case.source.span(node)[1]
                edits.append(Edit(case.source.path, start, end, ""))
            elif head == f"{torch}.sparse" and name in _DENSE:
                edits.append(case.source.replace(node.func, f"{torch}.{name}"))
        if edits:
            yield Proposal("stay with dense tensors", tuple(edits))

"""A tensor that was handed to numpy and came back."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueport.fix.base import Fix
from trueport.fix.case import Case, Proposal
from trueport.fix.edit import Edit
from trueport.fix.numpy_names import ARRAY, CONSTANTS, DTYPES, FUNCTIONS, KEYWORDS
from trueport.fix.syntax import called, dotted, imported_as

_BACK = frozenset({"from_numpy", "tensor", "as_tensor"})
_AND_SCALAR = {"maximum": "min", "minimum": "max"}
"""numpy takes a number as either argument of these; torch says it as clamp(min=...)."""


class StayInTorch(Fix):
    """`torch.from_numpy(np.tanh(x.numpy()))` becomes `torch.tanh(x)`.

    Within the function, `.numpy()` and `torch.from_numpy` are left out, and every function of numpy is replaced by the
    one of torch that means the same. Where one has none, nothing is proposed: half of the way is no way.
    """

    codes = ("TP204", "TP202")

    def proposals(self, case: Case) -> Iterator[Proposal]:
        if case.function is None:
            return
        rewrite = _Rewrite(case)
        rewrite.visit(case.function)
        if rewrite.edits and not rewrite.unknown:
            yield Proposal("stay in torch, without numpy", tuple(rewrite.edits))


class _Rewrite(ast.NodeVisitor):
    """Collects the edits of one function. Each touches only what it replaces, so that they can be nested."""

    def __init__(self, case: Case) -> None:
        self.source = case.source
        self.edits: list[Edit] = []
        self.unknown: list[str] = []
        self._numpy = imported_as(case.source, "numpy")
        self._torch = imported_as(case.source, "torch") or "torch"

    def visit_Call(self, node: ast.Call) -> None:
        func, name = node.func, called(node)
        numpy_function = self._of_numpy(func)
        if isinstance(func, ast.Attribute) and name == "numpy" and not numpy_function:
            self._cut(self.source.span(func.value)[1], self.source.span(node)[1])
            self.visit(func.value)
        elif numpy_function in ARRAY or (dotted(func) in self._ways_back() and len(node.args) == 1):
            self._unwrap(node)
        elif isinstance(func, ast.Attribute) and name == "astype" and node.args:
            self._replace(func.value, func, ".to")
            self.generic_visit(node)
        elif numpy_function in DTYPES and len(node.args) == 1:  # np.float32(x)
            self._unwrap(node, f".to({self._torch}.{DTYPES[numpy_function]})")
        elif numpy_function in _AND_SCALAR and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
            self.edits.append(self.source.replace(func, f"{self._torch}.clamp"))
            at = self.source.span(node.args[1])[0]
            self.edits.append(self.source.insert(at, f"{_AND_SCALAR[numpy_function]}="))
            self.visit(node.args[0])
        elif numpy_function:
            self._function(node, numpy_function)
        else:
            self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self._of_numpy(node)
        if name in DTYPES:
            self.edits.append(self.source.replace(node, f"{self._torch}.{DTYPES[name]}"))
        elif name and name not in CONSTANTS:
            self.unknown.append(name)
        elif not name:
            self.generic_visit(node)

    def _function(self, node: ast.Call, name: str) -> None:
        if name not in FUNCTIONS:
            self.unknown.append(name)
            return
        torch_name, suffix = FUNCTIONS[name]
        self.edits.append(self.source.replace(node.func, f"{self._torch}.{torch_name}"))
        if suffix:
            self.edits.append(self.source.insert(self.source.span(node)[1], suffix))
        for word in node.keywords:
            if word.arg in KEYWORDS:
                start = self.source.offset(word.lineno, word.col_offset)
                self.edits.append(Edit(self.source.path, start, start + len(word.arg), KEYWORDS[word.arg]))
            self.visit(word.value)
        for argument in node.args:
            self.visit(argument)

    def _unwrap(self, node: ast.Call, suffix: str = "") -> None:
        """`f(x)` as `x`, in the parentheses of the call where it needs some."""
        inner = node.args[0]
        start, end = self.source.span(node)
        first, last = self.source.span(inner)
        if isinstance(inner, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
            self._cut(start, first)
            self._cut(last, end, suffix)
        else:
            self._cut(start, self.source.span(node.func)[1])
            if suffix:
                self.edits.append(self.source.insert(end, suffix))
        self.visit(inner)

    def _replace(self, before: ast.expr, through: ast.expr, text: str) -> None:
        self._cut(self.source.span(before)[1], self.source.span(through)[1], text)

    def _cut(self, start: int, end: int, text: str = "") -> None:
        self.edits.append(Edit(self.source.path, start, end, text))

    def _of_numpy(self, node: ast.expr) -> str:
        """`tanh` of `np.tanh`; '' of anything else."""
        name = dotted(node)
        head = f"{self._numpy}."
        return name.removeprefix(head) if self._numpy and name.startswith(head) else ""

    def _ways_back(self) -> set[str]:
        return {f"{self._torch}.{name}" for name in _BACK}

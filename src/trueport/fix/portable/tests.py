"""A test of the user's as a tensor: what `if`, `while` and the ternary ask Python, torch.cond is given as a value.

    not bool(mask.all())            torch.logical_not(mask.all())
    x.sum()                         x.sum() != 0
    a > 0 and b > 0                 (a > 0) & (b > 0)
    0 < a < 1                       (0 < a) & (a < 1)

The same words serve sizes, which are symbolic numbers while torch exports.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from trueport.fix.portable.text import NoPortableForm
from trueport.fix.portable.values import SeenValue, ValueKind

_WORDS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant)


@dataclass(frozen=True)
class Test:
    """A test as an expression, and whether it is a tensor (or else a plain or symbolic truth)."""

    text: str
    is_tensor: bool
    is_atom: bool = False

    @property
    def operand(self) -> str:
        return self.text if self.is_atom else f"({self.text})"


class Tests:
    """Writes the tests of one function."""

    def __init__(self, write: Callable[[ast.expr], str], value: Callable[[ast.expr], SeenValue | None]) -> None:
        self._write, self._value = write, value

    def __call__(self, node: ast.expr) -> Test:
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self(operand)
                called = "torch.logical_not" if inner.is_tensor else "torch.sym_not"
                return Test(f"{called}({inner.text})", inner.is_tensor, True)
            case ast.BoolOp(op=op, values=values):
                return _joined("&" if isinstance(op, ast.And) else "|", [self(value) for value in values])
            case ast.Compare(left=left, ops=ops, comparators=others) if len(ops) > 1:
                sides = [left, *others]
                pairs = zip(sides, ops, others, strict=False)
                return _joined("&", [self(ast.copy_location(ast.Compare(a, [o], [b]), node)) for a, o, b in pairs])
            case ast.Call(func=ast.Name(id="bool"), args=[inner_node], keywords=[]):
                return self(inner_node)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._comparison(node, left, op, right)
            case _:
                return self._leaf(node)

    def _comparison(self, node: ast.expr, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Test:
        if type(op) not in _WORDS:
            raise NoPortableForm(node.lineno, f"`{ast.unparse(node)}` is no comparison that a tensor can make")
        sides = [plain(left), plain(right)]
        values = [self._value(side) for side in sides]
        tensor = any(value is not None and value.kind is ValueKind.TENSOR for value in values)
        axes = max((value.axes for value in values if value is not None), default=0)
        text = f"{self._write(sides[0])} {_WORDS[type(op)]} {self._write(sides[1])}"
        return _scalar(Test(text, tensor), axes)

    def _leaf(self, node: ast.expr) -> Test:
        inner = plain(node)
        value = self._value(inner)
        if value is None or value.kind is ValueKind.OTHER:
            raise NoPortableForm(node.lineno, f"what `{ast.unparse(node)}` is was not seen while eager ran")
        is_tensor = value.kind is ValueKind.TENSOR
        text, atom = self._write(inner), isinstance(inner, ATOMS)
        if not (value.truth or value.kind is ValueKind.BOOL):
            text, atom = f"{text if atom else f'({text})'} != 0", False
        return _scalar(Test(text, is_tensor, atom), value.axes)


def plain(node: ast.expr) -> ast.expr:
    """The tensor inside `int(t)`, `float(t)`, `bool(t)` or `t.item()`: a comparison takes it as it is."""
    match node:
        case ast.Call(func=ast.Name(id="int" | "float" | "bool"), args=[inner], keywords=[]):
            return plain(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
            return inner
        case _:
            return node


def _scalar(test: Test, axes: int) -> Test:
    """One truth: torch.cond takes a tensor without axes."""
    return Test(f"{test.operand}.reshape(())", True, True) if test.is_tensor and axes else test


def _joined(word: str, parts: list[Test]) -> Test:
    tensors = [part.is_tensor for part in parts]
    return Test(f" {word} ".join(part.operand for part in parts), any(tensors))


def questions(node: ast.expr) -> list[ast.expr]:
    """The expressions whose values decide how a test is written."""
    found: list[ast.expr] = []
    for inner in ast.walk(node):
        if isinstance(inner, ast.expr) and not isinstance(inner, ast.Constant | ast.Starred | ast.Slice):
            found.append(inner)
    return found

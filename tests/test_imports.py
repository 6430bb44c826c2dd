"""The contract between the rooms: data flows one way, so imports do too, and torch's private names live in one room.

Read from the syntax tree, so that imports inside functions and under TYPE_CHECKING count as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "trueport"

PIPELINE = "temporary source diagnostics errors load examine rewrite capture lower verify".split()
"""A room may import the rooms to the left of it."""
ALLOWED = {room: set(PIPELINE[: index + 1]) | {"torch_internals"} for index, room in enumerate(PIPELINE)}
ALLOWED["temporary"] = {"temporary"}
ALLOWED["source"] = {"source"}
ALLOWED["diagnostics"] = {"source", "diagnostics"}
ALLOWED["errors"] = {"source", "diagnostics", "errors"}
ALLOWED["report"] = {"temporary", "source", "diagnostics", "report"}
ALLOWED["fix"] = {"temporary", "source", "diagnostics", "errors", "report", "fix"}
ALLOWED["fix/portable"] = {*PIPELINE, "fix", "torch_internals"}
ALLOWED["torch_internals"] = {"torch_internals"}

ALLOWED["progress"] = set()
for _room in ALLOWED.values():
    _room.add("progress")  # anybody may say how far it has come

KNOWS_ALL = {"api", "run", "program", "summary", "cli", "__init__", "__main__"}
"""The API (with the two files that it is split into) and the command line see the whole house."""
WITHOUT_TORCH = ("source", "diagnostics", "errors", "report", "fix", "cli", "progress")
HEAVY = {"torch", "onnx", "onnx_ir", "onnxscript", "onnxruntime", "numpy", "transformers"}

FILES = sorted(SOURCE.rglob("*.py"))


def name_of(file: Path) -> str:
    return str(file.relative_to(SOURCE))


def room_of(file: Path) -> str:
    """Its folder. `fix` only reads findings and source; its inner room has models exported, and knows more."""
    if file.is_relative_to(SOURCE / "fix" / "portable"):
        return "fix/portable"
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    """Every imported dotted name; `from a import b` counts as `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are written absolute, so that this test can read them"
            yield from ((f"{node.module}.{alias.name}", node) for alias in node.names)


def imported_at_once(tree: ast.Module) -> Iterator[str]:
    """Top packages that importing the module imports, outside functions and TYPE_CHECKING."""
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (name.partition(".")[0] for name, _ in imports(node))
        elif not isinstance(node, ast.FunctionDef):
            waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]


def dotted(node: ast.expr) -> str:
    """`torch.fx.experimental` of the attribute expression that spells it; '' where it is not a chain of names."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""


def is_private_to_torch(name: str) -> bool:
    """Whether torch keeps this dotted name to itself. Names of operators are data: `torch.ops.aten._softmax`."""
    head, *rest = name.split(".")
    if head != "torch" or rest[:1] == ["ops"]:
        return False
    hidden = any(part.startswith("_") and not part.endswith("__") for part in rest)
    return hidden or rest[:2] == ["fx", "experimental"]


def private_names(tree: ast.AST) -> Iterator[str]:
    for name, node in imports(tree):
        if is_private_to_torch(name):
            yield f"line {node.lineno}: {name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private_to_torch(dotted(node)):
            yield f"line {node.lineno}: {dotted(node)}"


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_imports_go_one_way(file: Path) -> None:
    room = room_of(file)
    if room in KNOWS_ALL:
        return
    assert room in ALLOWED, f"{room} is a new room: say in this test what it may import"
    used = {name.split(".")[1] for name, _ in imports(ast.parse(file.read_text())) if name.startswith("trueport.")}
    assert used <= ALLOWED[room]


def test_only_the_command_line_and_the_package_itself_know_the_api() -> None:
    knowing = {
        room_of(file)
        for file in FILES
        for name, _ in imports(ast.parse(file.read_text()))
        if name.startswith(("trueport.api", "trueport.cli"))
    }
    assert knowing <= KNOWS_ALL


@pytest.mark.parametrize("file", [file for file in FILES if room_of(file) in WITHOUT_TORCH], ids=name_of)
def test_light_rooms_import_nothing_heavy(file: Path) -> None:
    assert not HEAVY & set(imported_at_once(ast.parse(file.read_text())))


def test_the_sandboxed_child_imports_nothing_of_ours() -> None:
    child = SOURCE / "verify" / "child.py"
    packages = {name.partition(".")[0] for name, _ in imports(ast.parse(child.read_text()))}
    assert not packages & {"trueport", "torch"}


@pytest.mark.parametrize("file", [file for file in FILES if room_of(file) != "torch_internals"], ids=name_of)
def test_private_names_of_torch_live_in_one_room(file: Path) -> None:
    assert list(private_names(ast.parse(file.read_text()))) == []


@pytest.mark.parametrize(
    "code",
    [
        "import torch.utils._pytree as pytree",
        "from torch.fx.experimental.symbolic_shapes import ShapeEnv",
        "from torch._ops import OpOverload",
        "from torch.nn.functional import _pad",
        "def f(op: torch._ops.OpOverload): ...",
        "torch._C._get_tracing_state()",
    ],
)
def test_what_counts_as_private(code: str) -> None:
    assert list(private_names(ast.parse(code)))


@pytest.mark.parametrize("code", ["torch.ops.aten._softmax.default", "torch.__version__", "import torch.fx", "a._b"])
def test_what_does_not_count_as_private(code: str) -> None:
    assert not list(private_names(ast.parse(code)))

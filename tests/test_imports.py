"""The contract between the rooms: data flows one way, so imports do too, and torch's private names live in one room.

The rooms inside `capture` and `verify` have an order of their own, and modules that need each other are few everywhere.

Read from the syntax tree, so that imports inside functions and under TYPE_CHECKING count as well.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "trueport"

PIPELINE = (
    "temporary source diagnostics errors load examine rewrite "
    "decompositions graph capture lower optimise functions verify"
).split()
"""A room may import the rooms to the left of it."""
ALLOWED = {room: set(PIPELINE[: index + 1]) | {"torch_internals"} for index, room in enumerate(PIPELINE)}
ALLOWED["temporary"] = {"temporary"}
ALLOWED["source"] = {"source"}
ALLOWED["diagnostics"] = {"source", "diagnostics"}
ALLOWED["errors"] = {"source", "diagnostics", "errors"}
ALLOWED["report"] = {"temporary", "source", "diagnostics", "report"}
ALLOWED["fix"] = {"temporary", "source", "diagnostics", "errors", "report", "fix"}
ALLOWED["fix/portable"] = {*PIPELINE, "fix", "torch_internals"}
ALLOWED["inspection"] = {"source", "diagnostics", "errors", "report", "inspection"}
ALLOWED["zoo"] = {"source", "diagnostics", "errors", "load", "zoo"}
ALLOWED["versions"] = {"source", "diagnostics", "errors", "versions"}
ALLOWED["torch_internals"] = {"torch_internals", "versions"}

ALLOWED["progress"] = set()
ALLOWED["garbage"] = set()
ALLOWED["installed"] = set()
for _room in ALLOWED.values():
    _room |= {"progress", "garbage", "installed"}  # anybody may ask or tell these

INSIDE = {
    "capture": (
        "limits assumptions unrolling "
        "values stops recording containers python effects joins loops branches "
        "torch_calls returned module_calls trace"
    ).split(),
    "verify": (
        "runtime replay inputs decisions judging faults calls options results assumed answers unchecked "
        "check fitted distribution in_turn foreign exported any_file two_files"
    ).split(),
    "generation": "watch plan step eager running proof folder sharing genai lora loading exporting".split(),
}
"""The rooms and files inside a room: each may import those to the left of it, under TYPE_CHECKING too.

A type that is made to the right and asked to the left is a Protocol on the left (`capture/recording/flow.py`).
"""

MOST_IN_A_CYCLE = 3
"""Modules that import each other, directly or by way of others, can be read only together."""
MOST_FILES = 30
"""In one folder."""
ONE_THING_ONE_FILE = ("diagnostics/rules",)

KNOWS_ALL = set("api run program summary picture generation sweeping cli pytest_plugin __init__ __main__".split())
"""The API (with the files that it is split into), the rooms above it and the command line see the whole house."""
WITHOUT_TORCH = ("source", "diagnostics", "errors", "report", "fix", "cli", "inspection", "sweeping", "progress")
STANDARD_LIBRARY_ONLY = ("temporary", "source", "diagnostics", "rewrite", "progress", "garbage", "installed")
"""What their `__init__` or their place in the house promises; anybody can read them without knowing another library."""
HEAVY = {"torch", "onnx", "onnx_ir", "onnxscript", "onnxruntime", "numpy", "transformers"}

FILES = sorted(SOURCE.rglob("*.py"))


def name_of(file: Path) -> str:
    return str(file.relative_to(SOURCE))


def room_of(file: Path) -> str:
    """Its folder. `fix` only reads findings and source; its inner room has models exported, and knows more."""
    if file.is_relative_to(SOURCE / "fix" / "portable"):
        return "fix/portable"
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


@functools.cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def where_found(files: Iterable[Path], faults: Callable[[Path], Iterable[object]]) -> dict[str, list[object]]:
    """By file, its faults. One test asks a question of all files: a test for each would be thousands."""
    found = {name_of(file): list(faults(file)) for file in files}
    assert found, "no files"
    return {name: wrong for name, wrong in found.items() if wrong}


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


def test_imports_go_one_way() -> None:
    def against(file: Path) -> set[str]:
        room = room_of(file)
        if room in KNOWS_ALL:
            return set()
        assert room in ALLOWED, f"{room} is a new room: say in this test what it may import"
        return {name.split(".")[1] for name, _ in imports(tree_of(file)) if name.startswith("trueport.")} - ALLOWED[
            room
        ]

    assert where_found(FILES, against) == {}


def name_inside(room: str, name: str) -> list[str]:
    """The part of a room that a dotted name lies in: [`loops`] of `trueport.capture.loops.plan.Plan`."""
    return name.split(".")[2:3] if name.startswith(f"trueport.{room}.") else []


@pytest.mark.parametrize("room", INSIDE)
def test_imports_inside_a_room_go_one_way(room: str) -> None:
    order = INSIDE[room]

    def against(file: Path) -> set[str]:
        parts = file.relative_to(SOURCE / room).parts
        if parts == ("__init__.py",):
            return set()
        part = parts[0].removesuffix(".py")
        assert part in order, f"{part} is new in {room}: say in this test where it stands"
        used = {to for name, _ in imports(tree_of(file)) for to in name_inside(room, name)}
        return used - set(order[: order.index(part) + 1])

    assert where_found((file for file in FILES if file.is_relative_to(SOURCE / room)), against) == {}


def test_a_folder_is_small() -> None:
    folders = Counter(str(file.parent.relative_to(SOURCE)) for file in FILES if file.name != "__init__.py")
    large = {folder: files for folder, files in folders.items() if files > MOST_FILES}
    assert large.keys() <= set(ONE_THING_ONE_FILE)


def modules_imported() -> dict[str, set[str]]:
    """By dotted name, the modules of ours that a module imports anywhere: in functions and under TYPE_CHECKING too."""
    files = {dotted_name(file): file for file in FILES}
    used: dict[str, set[str]] = {}
    for module, file in files.items():
        names = [name for name, _ in imports(tree_of(file))]
        used[module] = {name if name in files else name.rpartition(".")[0] for name in names} & set(files) - {module}
    return used


def dotted_name(file: Path) -> str:
    return ".".join(file.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def cycles(edges: Mapping[str, set[str]]) -> list[set[str]]:
    """Strongly connected components of two or more: each module of a set reaches all others of it."""
    reached: dict[str, set[str]] = {}
    for start in edges:
        reached[start], waiting = set(), [start]
        while waiting:
            new = edges[waiting.pop()] - reached[start]
            reached[start] |= new
            waiting += new
    found = {frozenset(other for other in reached[each] if each in reached[other]) for each in edges}
    return [set(cycle) for cycle in found if len(cycle) > 1]


def test_few_modules_need_each_other() -> None:
    assert [sorted(cycle) for cycle in cycles(modules_imported()) if len(cycle) > MOST_IN_A_CYCLE] == []


def test_what_is_a_cycle() -> None:
    edges: dict[str, set[str]] = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"a"}}
    assert cycles(edges) == [{"a", "b", "c"}]


def test_a_class_name_has_one_meaning() -> None:
    homes: dict[str, set[str]] = {}
    for file in FILES:
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, set()).add(name_of(file))
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def test_only_the_command_line_and_the_package_itself_know_the_api() -> None:
    knowing = {
        room_of(file)
        for file in FILES
        for name, _ in imports(tree_of(file))
        if name.startswith(("trueport.api", "trueport.cli"))
    }
    assert knowing <= KNOWS_ALL


def test_light_rooms_import_nothing_heavy() -> None:
    def heavy(file: Path) -> set[str]:
        read = {"onnx"} if room_of(file) == "inspection" else set()  # which is there to read ONNX files
        return (HEAVY - read) & set(imported_at_once(tree_of(file)))

    assert where_found((file for file in FILES if room_of(file) in WITHOUT_TORCH), heavy) == {}


def test_rooms_of_the_standard_library_import_no_other() -> None:
    def others(file: Path) -> set[str]:
        packages = {name.partition(".")[0] for name, _ in imports(tree_of(file))}
        return packages - {"trueport"} - sys.stdlib_module_names

    assert where_found((file for file in FILES if room_of(file) in STANDARD_LIBRARY_ONLY), others) == {}


def test_a_room_that_promises_the_standard_library_only_is_held_to_it() -> None:
    promising = {
        room_of(file) for file in FILES if "standard library only" in (ast.get_docstring(tree_of(file)) or "").lower()
    }
    assert promising <= set(STANDARD_LIBRARY_ONLY)


def test_the_sandboxed_child_imports_nothing_of_ours() -> None:
    child = SOURCE / "verify" / "runtime" / "child.py"
    packages = {name.partition(".")[0] for name, _ in imports(tree_of(child))}
    assert not packages & {"trueport", "torch"}


OUTSIDE_TORCH = [file for file in FILES if room_of(file) != "torch_internals"]


def test_private_names_of_torch_live_in_one_room() -> None:
    assert where_found(OUTSIDE_TORCH, lambda file: private_names(tree_of(file))) == {}


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


OF_SYMBOLIC_NUMBERS = {"expr", "shape_env", "has_hint"}
"""What torch keeps under `.node` of a SymInt, a SymFloat or a SymBool."""


def insides_of_symbolic_numbers(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        of_node = isinstance(node.value, ast.Attribute) and node.value.attr == "node"
        if node.attr == "shape_env" or (of_node and node.attr in OF_SYMBOLIC_NUMBERS):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def test_schemas_of_operators_are_read_in_one_room() -> None:
    def read(file: Path) -> Iterator[int]:
        attributes = (node for node in ast.walk(tree_of(file)) if isinstance(node, ast.Attribute))
        return (node.lineno for node in attributes if node.attr == "_schema")

    assert where_found(OUTSIDE_TORCH, read) == {}, "ask trueport.torch_internals.schemas"


def test_symbolic_numbers_are_opened_in_one_room() -> None:
    found = where_found(OUTSIDE_TORCH, lambda file: insides_of_symbolic_numbers(tree_of(file)))
    assert found == {}, "ask trueport.torch_internals.symbolic"


@pytest.mark.parametrize("code", ["x.node.expr", "f(x)[0].node.shape_env", "x.node.has_hint()", "mode.shape_env"])
def test_what_opens_a_symbolic_number(code: str) -> None:
    assert list(insides_of_symbolic_numbers(ast.parse(code)))


@pytest.mark.parametrize("code", ["node.expr", "x.node.args", "FakeTensorMode(shape_env=shapes)", "number.expr"])
def test_what_does_not_open_one(code: str) -> None:
    assert not list(insides_of_symbolic_numbers(ast.parse(code)))


BY_DEPTH = {"examine/limits.py"}
"""Whose `__enter__` is called by the `with` itself, and by nobody in between."""


def test_nothing_depends_on_how_many_calls_lie_between() -> None:
    """A wrapper would break it without a word. Who called is told by code or by file (`capture/stops/places.py`)."""

    def by_depth(file: Path) -> Iterator[int]:
        calls = (node for node in ast.walk(tree_of(file)) if isinstance(node, ast.Call))
        return (call.lineno for call in calls if dotted(call.func) == "sys._getframe" and call.args)

    assert where_found((file for file in FILES if name_of(file) not in BY_DEPTH), by_depth) == {}

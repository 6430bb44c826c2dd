"""The canary knows every private name that is used, holds in this torch, and says what does not hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.test_imports import SOURCE, dotted, imports, is_private_to_torch
from trueport.torch_internals import contract

ROOM = SOURCE / "torch_internals"
KNOWN = {name for line in contract.names() for name in line.split(" | ")}


def private_names_used(file: Path) -> Iterator[str]:
    tree = ast.parse(file.read_text())
    yield from (name for name, _ in imports(tree) if is_private_to_torch(name))
    chains = (dotted(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    yield from (name for name in chains if is_private_to_torch(name))


@pytest.mark.parametrize("file", sorted(ROOM.glob("*.py")), ids=lambda file: file.name)
def test_every_private_name_that_is_used_is_in_the_contract(file: Path) -> None:
    unknown = {n for n in private_names_used(file) if not any(f"{k}.".startswith(f"{n}.") for k in KNOWN)}
    assert unknown == set()


def test_it_holds_in_this_torch() -> None:
    assert contract.broken() == []


def test_a_name_that_is_gone_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch, "_sync")
    told = contract.broken()
    assert "torch._sync is missing" in told
    assert any(what.startswith("a_functional_tensor_takes_another_value: ") for what in told)


def test_a_behaviour_that_changed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: False)
    (told,) = contract.broken()
    assert told.startswith("the_flags_of_the_compiler_are_read: ")


@pytest.mark.parametrize("file", sorted(SOURCE.rglob("*.py")), ids=lambda file: str(file.relative_to(SOURCE)))
def test_nobody_else_asks_which_release_of_torch_it_is(file: Path) -> None:
    asks = any(
        isinstance(n, ast.Attribute) and dotted(n) == "torch.__version__" for n in ast.walk(ast.parse(file.read_text()))
    )
    assert not asks or file.name in ("releases.py",)

"""The file says where each node comes from, and nothing about the machine; or nothing at all."""

from __future__ import annotations

import getpass
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
import torch

import trueport

NET = '''"""A text about the model that stays at home."""
import torch
from torch import nn

from helpers.parts import halved

class Net(nn.Module):
    """Another text that stays at home."""
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.fc = nn.Linear(4, 3)
    def forward(self, x, mode: str = "plain"):
        y = self.fc(x)
        if y.sum() > 0:  # a comment that stays at home
            y = halved(y)
        return nn.functional.gelu(y)
'''
PARTS = """
def halved(secret_name):
    return secret_name / 2
"""


def project(folder: Path, mark: str) -> Path:
    (folder / "helpers").mkdir(parents=True)
    (folder / "helpers" / "__init__.py").touch()
    (folder / "helpers" / "parts.py").write_text(PARTS)
    (folder / "net.py").write_text(NET)
    if mark:
        (folder / mark).touch()
    return folder


def exported(target: str, cwd: Path, out: Path, *options: str) -> bytes:
    command = [sys.executable, "-m", "trueport", "export", target, "-i", "x:Bx4", "-o", str(out), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return out.read_bytes()


def sources(content: bytes) -> set[str]:
    model, found = onnx.load_from_string(content), set()
    pending = list(model.graph.node)
    while pending:
        node = pending.pop()
        found |= {entry.value for entry in node.metadata_props if entry.key == "trueport.source"}
        for attribute in node.attribute:
            pending += attribute.g.node
    return found


@pytest.mark.parametrize("mark", ["pyproject.toml", ".git", ""])
def test_the_same_project_in_two_folders_gives_the_same_file(tmp_path: Path, mark: str) -> None:
    one, two = project(tmp_path / "one", mark), project(tmp_path / "elsewhere" / "two", mark)
    (tmp_path / "out").mkdir()
    first = exported("net.py:Net", one, tmp_path / "a.onnx")
    second = exported("net.py:Net", two, tmp_path / "b.onnx")
    assert first == second
    assert sources(first) == {"net.py:14", "net.py:15", "net.py:17", "helpers/parts.py:3"}
    assert str(tmp_path).encode() not in first
    if mark == "pyproject.toml":  # the project is the same, wherever one stands
        assert exported(str(one / "net.py:Net"), tmp_path / "out", tmp_path / "c.onnx") == first


def test_the_root_can_be_named(tmp_path: Path) -> None:
    one = project(tmp_path / "one", "pyproject.toml")
    named = exported("net.py:Net", one, tmp_path / "a.onnx", "--source-root", str(tmp_path))
    assert "one/helpers/parts.py:3" in sources(named)


def test_nothing_of_the_source_is_in_a_file_that_goes_to_others(tmp_path: Path) -> None:
    one = project(tmp_path / "one", "pyproject.toml")
    content = exported("net.py:Net", one, tmp_path / "a.onnx", "--no-source")
    proof = (tmp_path / "a.onnx.proof.json").read_bytes()
    for place in (content, proof):
        for word in (
            str(tmp_path),
            "net.py",
            "parts.py",
            "stays at home",
            "secret_name",
            "halved",
            "y.sum()",
            "site-packages",
        ):
            assert word.encode() not in place, word
        if len(getpass.getuser()) > 4:
            assert getpass.getuser().encode() not in place
    assert sources(content) == set()


def test_lines_of_installed_libraries_and_addresses_say_nothing_of_the_machine(tmp_path: Path) -> None:
    class Setting:
        """Python shows it by its address."""

    class Uses(torch.nn.Module):
        def forward(self, x: torch.Tensor, setting: object) -> torch.Tensor:
            return torch.nn.functional.pad(x, (1, 1)) * 2

    path = tmp_path / "m.onnx"
    trueport.export(Uses(), (torch.ones(2, 3), Setting()), path, constants=["setting"])
    content = path.read_bytes()
    assert all(not note.startswith("/") for note in sources(content))
    assert b" at 0x" not in content


def test_a_root_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(trueport.UsageError, match="no folder"):
        trueport.export(torch.nn.Identity(), (torch.ones(2),), source_root=tmp_path / "missing")

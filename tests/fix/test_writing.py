"""`--write` never loses a file: it is written whole, or it stays as it is."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest

from trueport.errors import UsageError
from trueport.fix.edit import Edit, FileChange, SourceFile, applied
from trueport.fix.writing import is_installed, write_changes


def change(path: Path, text: str) -> FileChange:
    before = SourceFile.read(path)
    return FileChange(before, applied(before, [Edit(before.path, 0, len(before.text), text)]))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_bytes(b"x = 1\r\n")
    return path


def test_the_file_is_replaced_and_keeps_its_permissions(model: Path) -> None:
    model.chmod(0o754)
    assert write_changes([change(model, "x = 2\r\n")]) == (model.resolve(),)
    assert model.read_bytes() == b"x = 2\r\n"
    assert model.stat().st_mode & 0o777 == 0o754
    assert os.listdir(model.parent) == ["model.py"]


def test_a_link_stays_a_link(model: Path) -> None:
    link = model.parent / "link.py"
    link.symlink_to(model)
    write_changes([change(link, "x = 2\r\n")])
    assert link.is_symlink()
    assert model.read_bytes() == b"x = 2\r\n"


def test_what_changed_meanwhile_is_left_alone(model: Path) -> None:
    other = model.parent / "other.py"
    other.write_text("y = 1\n")
    changes = [change(other, "y = 2\n"), change(model, "x = 2\r\n")]
    model.write_text("x = 'mine'\n")
    with pytest.raises(UsageError, match="was changed"):
        write_changes(changes)
    assert model.read_text() == "x = 'mine'\n"
    assert other.read_text() == "y = 1\n"
    assert sorted(os.listdir(model.parent)) == ["model.py", "other.py"]


def test_a_library_is_not_edited(tmp_path: Path) -> None:
    path = tmp_path / "site-packages" / "library.py"
    path.parent.mkdir()
    path.write_text("x = 1\n")
    with pytest.raises(UsageError, match="installed library"):
        write_changes([change(path, "x = 2\n")])
    assert path.read_text() == "x = 1\n"


def test_what_is_installed() -> None:
    assert is_installed(Path(sysconfig.get_path("stdlib")) / "ast.py")
    assert is_installed(Path(sysconfig.get_path("purelib")) / "torch" / "__init__.py")
    assert not is_installed(Path(__file__))

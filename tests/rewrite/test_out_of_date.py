"""A file that is edited after it was loaded: the text is no longer what eager computes, and is not exported."""

from __future__ import annotations

import importlib.util
import os
import time

import psutil
import pytest
import torch

import trueport
from trueport.errors import ExportError
from trueport.rewrite import out_of_date

MODEL = """
def forward(x):
    if x.sum() > 0:
        return x * 2
    return x
"""


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_edited_function_is_refused_until_it_is_loaded_again(tmp_path):
    path = tmp_path / "edited.py"
    path.write_text(MODEL)
    old = loaded(path)
    path.write_text(MODEL.replace("x * 2", "x * 3 + 1"))
    os.utime(path, (time.time() + 60, time.time() + 60))  # however soon after Python started this test runs
    with pytest.raises(ExportError, match="TP107") as refused:
        trueport.export(old.forward, (torch.ones(3),))
    (found,) = (each for each in refused.value.diagnostics if each.is_error)
    assert "changed after it was loaded" in found.message
    assert "importlib.reload" in found.fix
    program = trueport.export(loaded(path).forward, (torch.ones(3),))
    assert torch.equal(program(torch.ones(3)), torch.full((3,), 4.0))


def test_an_edit_elsewhere_in_the_file_does_no_harm(tmp_path):
    path = tmp_path / "edited_elsewhere.py"
    path.write_text(MODEL)
    module = loaded(path)
    path.write_text(f"{MODEL}\n\ndef other():\n    return 7\n")
    assert trueport.export(module.forward, (torch.ones(3),)).report.verified


NESTED = """
def forward(x):
    def scaled(y):
        return y * 2 if y.sum() > 0 else y
    y = scaled(x)
    return y + 1 if y.mean() > 0 else y - 1
"""


def test_a_file_written_just_now_with_a_function_in_a_function(tmp_path):
    """The inner one is rewritten first, and the outer one then holds another code than its text."""
    path = tmp_path / "nested.py"
    path.write_text(NESTED)
    program = trueport.export(loaded(path).forward, (torch.ones(3),))
    assert torch.equal(program(torch.ones(3)), torch.full((3,), 3.0))


def test_a_file_of_the_same_name_in_another_folder(tmp_path, monkeypatch):
    """Relative names, as of code that was compiled by hand: Python remembers the text of the first."""
    for folder, text in (("one", "\n\n\ndef other():\n    pass\n"), ("two", MODEL)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same_name.py").write_text(text)
    import linecache

    monkeypatch.syspath_prepend(str(tmp_path / "one"))
    monkeypatch.chdir(tmp_path)
    assert "other" in "".join(linecache.getlines("same_name.py"))
    monkeypatch.chdir(tmp_path / "two")
    space: dict[str, object] = {}
    exec(compile(MODEL, "same_name.py", "exec"), space)
    program = trueport.export(space["forward"], (torch.ones(3),))
    assert torch.equal(program(-torch.ones(3)), -torch.ones(3))


def test_a_file_saved_just_before_python_started_is_not_compared(tmp_path, monkeypatch):
    """Pytest changes the assertions of a test as it loads it; the file says something else, and is not out of date."""
    path = tmp_path / "saved_before.py"
    path.write_text(MODEL)
    old = loaded(path)
    path.write_text(MODEL.replace("x * 2", "x * 3 + 1"))
    code, text = old.forward.__code__, path.read_text()
    monkeypatch.setattr(out_of_date, "_started", lambda: path.stat().st_mtime - 0.5)
    assert not out_of_date.is_out_of_date(code, text)
    monkeypatch.setattr(out_of_date, "_started", lambda: path.stat().st_mtime - 60)
    assert out_of_date.is_out_of_date(code, text)


def test_when_the_process_began():
    ours = psutil.Process().create_time()
    assert out_of_date._started() == pytest.approx(ours, abs=1)


def test_without_a_proc_folder_less_is_compared(monkeypatch):
    def missing(*_):
        raise FileNotFoundError

    monkeypatch.setattr(out_of_date.Path, "read_text", missing)
    assert out_of_date._started.__wrapped__() >= out_of_date._started()

"""Edits change what they say and nothing else: not the line ends, not the encoding, not a comment."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from trueport.fix.edit import Edit, EditsOverlap, FileChange, SourceFile, applied, unified_diff


def source(text: str) -> SourceFile:
    return SourceFile(Path("/home/me/model.py"), text)


def first(kind: type[ast.expr], file: SourceFile) -> ast.expr:
    return next(node for node in ast.walk(file.tree) if isinstance(node, kind))


def test_only_the_span_changes() -> None:
    file = source("x = x.view(8,   4)  # as before\n")
    call = first(ast.Call, file)
    assert isinstance(call, ast.Call)
    after = applied(file, [file.replace(call.args[0], "-1")])
    assert after.text == "x = x.view(-1,   4)  # as before\n"


def test_letters_of_several_bytes_are_counted_as_letters() -> None:
    file = source('s = "größe"; x = f(8)\n')
    assert file.text_of(first(ast.Call, file)) == "f(8)"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_stay(end: str) -> None:
    file = source(f"a = 1{end}\x0cb = f(2){end}")
    assert file.newline == end
    assert file.text_of(first(ast.Call, file)) == "f(2)"
    assert applied(file, [file.replace(first(ast.Call, file), "g")]).text == f"a = 1{end}\x0cb = g{end}"


def test_a_file_is_read_in_its_own_encoding(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_bytes("# -*- coding: latin-1 -*-\nname = 'größe'\n".encode("latin-1"))
    file = SourceFile.read(path)
    assert "größe" in file.text
    assert file.content == path.read_bytes()


def test_several_edits_are_made_together() -> None:
    file = source("abcdef")
    edits = [Edit(file.path, 4, 5, "E"), Edit(file.path, 0, 2, ""), Edit(file.path, 3, 3, "-")]
    assert applied(file, edits).text == "c-dEf"


def test_the_same_edit_twice_is_one() -> None:
    file = source("abc")
    assert applied(file, [Edit(file.path, 0, 1, "x"), Edit(file.path, 0, 1, "x")]).text == "xbc"


@pytest.mark.parametrize("other", [(0, 2), (1, 1), (2, 4)])
def test_edits_that_want_the_same_letters_are_refused(other: tuple[int, int]) -> None:
    file = source("abcdef")
    with pytest.raises(EditsOverlap):
        applied(file, [Edit(file.path, 0, 3, "x"), Edit(file.path, *other, "y")])


def test_edits_of_other_files_are_left_alone() -> None:
    file = source("abc")
    assert applied(file, [Edit(Path("/elsewhere.py"), 0, 1, "x")]).text == "abc"


def test_the_diff_is_one_that_patch_reads() -> None:
    file = source("a\nb\nc")
    shown = unified_diff([FileChange(file, source("a\nB\nc"))], Path("/home/me"))
    assert shown == "--- a/model.py\n+++ b/model.py\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n\\ No newline at end of file\n"


def test_what_does_not_change_has_no_diff() -> None:
    file = source("a\n")
    assert unified_diff([FileChange(file, file)]) == ""

"""A fix is chosen by the facts of a finding. The words of a message are for people, and may be changed at any time."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import trueport.fix.fixes

FIXES = sorted(Path(trueport.fix.fixes.__path__[0]).glob("*.py"))
WORDS = {"message", "label", "seen", "title"}


@pytest.mark.parametrize("file", FIXES, ids=lambda file: file.stem)
def test_no_fix_reads_the_words_of_a_finding(file):
    read = {node.attr for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Attribute)}
    assert not read & WORDS, "fill `facts` where the diagnostic is raised"

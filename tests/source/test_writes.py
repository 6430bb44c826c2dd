"""Which line of a function writes to an attribute, or to what it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueport.source.writes import line_that_writes

MODEL = """\
class Net:
    def __init__(self):
        self.n = 0

    @decorated
    def forward(self, x):
        y = self.n + self.cache["k"]
        self.n += 1
        y, self.h = self.rnn(x, self.h)
        self.cache["k"] = y
        self.table["a"]["b"] = y
        self.seen.append(x)
        setattr(self, "named", y)
        for self.i in x:
            pass
        del self.old[0]
        return self.read.index(y)
"""
FORWARD = 5


@pytest.mark.parametrize(
    ("attribute", "line"),
    [
        ("n", 8),
        ("h", 9),
        ("cache", 10),
        ("table", 11),
        ("seen", 12),
        ("named", 13),
        ("i", 14),
        ("old", 16),
        ("read", None),
        ("rnn", None),
        ("nowhere", None),
    ],
)
def test_the_line_that_writes(tmp_path: Path, attribute: str, line: int | None):
    file = tmp_path / "net.py"
    file.write_text(MODEL)
    assert line_that_writes(str(file), FORWARD, attribute) == line


def test_source_that_is_not_there():
    assert line_that_writes("<string>", 1, "n") is None

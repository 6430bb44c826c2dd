"""A short sample of `make soak`, and what its page says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.soak.__main__ import PARTS, page

SAMPLE = {"exports": 3, "kills": 1, "races": 6, "mutated": 6}


@pytest.mark.parametrize("part", PARTS)
def test_a_sample(tmp_path: Path, part: str) -> None:
    kept = ["--keep", str(tmp_path / "kept"), "--page", str(tmp_path / "soak.md")]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.soak", "--part", part, "--count", str(SAMPLE[part]), "--seed", "1", *kept],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = json.loads((tmp_path / "kept" / f"{part}.json").read_text())
    assert found["faults"] == []
    assert f"## {part}" in (tmp_path / "soak.md").read_text()


def test_the_page_lists_faults() -> None:
    shown = page({"races": {"races": 3, "won by": [1, 2], "faults": ["race 1: mixed"]}})
    assert "**faults: 1**" in shown
    assert "race 1: mixed" in shown

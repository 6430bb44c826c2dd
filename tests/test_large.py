"""A model of 200 MB is exported and verified without a second copy of its weights in the exporting process.

`python -m benchmarks.large` does the same with 6 GB; benchmarks/results/large.md has what it took.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[1]
NOISE = 64 << 20
"""What Python, torch and their allocators may take besides, whatever the model; a copy of the weights is more."""


@pytest.mark.skipif(psutil.virtual_memory().available < 3 << 30, reason="too little memory to measure it")
@pytest.mark.skipif(not hasattr(psutil.Process().memory_info(), "shared"), reason="needs to tell shared memory apart")
def test_no_second_copy_of_the_weights() -> None:
    program = "import json; from benchmarks.large import measure; print(json.dumps(measure(0.2, width=2048)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["verified"]
    assert found["weights"] > 190e6
    assert found["written"] >= found["weights"]
    assert found["above"] <= 0.1 * found["weights"] + NOISE, found

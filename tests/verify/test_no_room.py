"""Saving where there is no room, for real: a limit on the size of files, in a process of its own.

`RLIMIT_FSIZE` makes every write beyond it fail as on a full disk (with EFBIG for ENOSPC), also for who is root.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

import trueport

SCRIPT = """
import resource, sys
import torch, trueport

target, limit_at = sys.argv[1], sys.argv[2]
model, x = torch.nn.Linear(200, 200), torch.rand(2, 200)

def no_room():
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))

if limit_at == "start":
    no_room()
else:  # once the check is done
    import trueport.program as program
    write = program.write
    def later(*arguments):
        program.write = write
        no_room()
        return write(*arguments)
    program.write = later
try:
    trueport.export(model, (x,), target, overwrite=True, proof=True)
except trueport.UsageError as refused:
    print("refused:", refused.diagnostics[0].message)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
program = trueport.export(model, (x,), target + ".again")
print("then:", program.report.verified)
"""


@pytest.mark.parametrize(
    ("limit_at", "says"), [("start", "the check needs a copy of the model in"), ("saving", "cannot write")]
)
def test_a_full_disk_is_told_nothing_half_remains_and_the_next_export_works(tmp_path, limit_at, says):
    target, temporary = tmp_path / "net.onnx", tmp_path / "tmp"
    temporary.mkdir()
    target.write_bytes(b"the old one")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(target), limit_at],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
        check=False,
    )
    assert done.stdout.startswith(f"refused: {says}"), done.stderr
    assert "then: True" in done.stdout
    assert target.read_bytes() == b"the old one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.onnx", "net.onnx.again", "tmp"]
    assert [path for path in temporary.rglob("*") if path.is_file() and "onnx" in path.name] == []


def test_a_place_that_takes_no_files_is_told(tmp_path):
    with pytest.raises(trueport.UsageError, match=r"/proc/net\.onnx"):
        trueport.export(torch.nn.Linear(2, 2), (torch.rand(1, 2),), Path("/proc/net.onnx"))

"""`make demo`: what trueport does for a model that can be carried over, and what it says of one that cannot."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import onnxruntime
import torch

from examples.models import detector

MODELS = os.path.relpath(Path(__file__).with_name("models.py"))


def say(text: str) -> None:
    print(f"\n\x1b[1m# {text}\x1b[0m" if sys.stdout.isatty() else f"\n# {text}", flush=True)


def run(*arguments: str) -> int:
    """Run a `trueport` command as a user would, and show it."""
    print(f"$ trueport {shlex.join(arguments)}", flush=True)
    return subprocess.run([sys.executable, "-m", "trueport", *arguments], check=False).returncode


def compare_on_an_unseen_input(onnx_file: Path) -> None:
    """The example had other sizes and other numbers; the count of boxes found is different as well."""
    features = torch.randn(11, 8)
    with torch.no_grad():
        eager = detector()(features)
    answers = onnxruntime.InferenceSession(onnx_file).run(list(eager), {"features": features.numpy()})
    for (name, expected), answer in zip(eager.items(), answers, strict=True):
        torch.testing.assert_close(torch.from_numpy(answer), expected)
        print(f"{name}: {list(expected.shape)} equal to eager")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        onnx_file = Path(folder) / "detector.onnx"
        say("A branch on a tensor, a loop over a free length, a loop until a value is small: all kept, as If and Loop")
        kept = run("export", f"{MODELS}:reader", "-i", "words:Nx3", "-o", str(Path(folder) / "reader.onnx"))
        if kept != 0:
            return kept
        say("A data-dependent number of boxes, a free batch, an in-place write: exported, then checked against eager")
        exported = run("export", f"{MODELS}:detector", "-i", "features:Nx8", "-o", str(onnx_file))
        if exported != 0:
            return exported
        say("The written file in ONNX Runtime, on a batch of 11 that nobody has seen before")
        compare_on_an_unseen_input(onnx_file)
        say("A scale computed in numpy: refused at its line, instead of exporting the example's number")
        refused = run("check", f"{MODELS}:scaler", "-i", "x:8")
        return 0 if refused == 1 else 1


if __name__ == "__main__":
    sys.exit(main())

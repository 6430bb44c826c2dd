"""`python alone.py FOLDER`: every `NAME/model.onnx` there on the inputs in `NAME/given-K.npz`, with nothing but numpy
and onnxruntime. What the runtime gives is written to `NAME/gave-K.npz`; what it says instead, to `NAME/said-K.txt`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime


def flat(values: Any) -> Iterator[Any]:
    """A sequence of ONNX's is a list."""
    for value in values:
        yield from flat(value) if isinstance(value, list) else [np.asarray(value)]


def run(folder: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session: Any = None
    for given in sorted(folder.glob("given-*.npz")):
        number = given.stem.removeprefix("given-")
        try:
            if session is None:
                path = str(folder / "model.onnx")
                session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            with np.load(given) as arrays:
                gave = list(flat(session.run(None, dict(arrays))))
        except Exception as error:  # noqa: BLE001 the runtime's exceptions have no common type; all are a result here
            (folder / f"said-{number}.txt").write_text(" ".join(f"{type(error).__name__}: {error}".split())[:200])
            continue
        np.savez(folder / f"gave-{number}.npz", *gave)


if __name__ == "__main__":
    for each in sorted(Path(sys.argv[1]).iterdir()):
        run(each)

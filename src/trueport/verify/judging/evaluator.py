"""A program of its own: runs an ONNX file in the reference evaluator of the `onnx` package.

    python -I evaluator.py PARENT MEMORY SECONDS LIBRARY... MODEL FEEDS.npz ANSWERS.npz

It is slow and knows no optimisation, which makes it the witness to ask when onnxruntime and eager disagree. Started by
path, it imports onnx and numpy and nothing of ours. It ends with its parent (a process number), and has so many bytes
of memory and seconds of computing for itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import sys
import threading
import time

PR_SET_PDEATHSIG = 1


def main(libraries: list[str], model: str, feeds: str, answers: str) -> None:
    sys.path.extend(libraries)
    numpy = importlib.import_module("numpy")
    reference = importlib.import_module("onnx.reference")
    with numpy.load(feeds) as given:
        values = {name: given[f"a{at}"] for at, name in enumerate(json.loads(str(given["names"])))}
    evaluator = reference.ReferenceEvaluator(model)
    results = evaluator.run(None, values)
    found = dict(zip(evaluator.output_names, results, strict=True))
    tensors = {name: value for name, value in found.items() if hasattr(value, "dtype")}
    for name, items in ((name, value) for name, value in found.items() if isinstance(value, list)):
        tensors[f"{name}[]"] = numpy.array(len(items))
        tensors.update((f"{name}[{at}]", item) for at, item in enumerate(items))
    arrays = {f"a{at}": value for at, value in enumerate(tensors.values())}  # a name may be any text
    numpy.savez(answers, names=numpy.array(json.dumps(list(tensors))), **arrays)


def limit(memory: int, seconds: int) -> None:
    try:
        import resource
    except ImportError:
        return
    for what, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(what)[1]
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def end_with(parent: int) -> None:
    """numpy may keep the interpreter to itself for long; the kernel ends the process at once, where it can."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    parent, memory, seconds, *libraries, model, feeds, answers = sys.argv[1:]
    limit(int(memory), int(seconds))
    threading.Thread(target=end_with, args=(int(parent),), daemon=True).start()
    main(libraries, model, feeds, answers)

"""A program of its own: runs an ONNX file in the reference evaluator of the `onnx` package.

    python -I evaluator.py LIBRARY... MODEL FEEDS.npz ANSWERS.npz

It is slow and knows no optimisation, which makes it the witness to ask when onnxruntime and eager disagree. Started by
path with a time limit, it imports onnx and numpy and nothing of ours.
"""

from __future__ import annotations

import importlib
import json
import sys


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


if __name__ == "__main__":
    *libraries, model, feeds, answers = sys.argv[1:]
    main(libraries, model, feeds, answers)

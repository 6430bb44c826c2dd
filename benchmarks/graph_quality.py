"""`python -m benchmarks.graph_quality`: how large and how quick the exported graphs are, ours beside everybody else's.

Each model is exported by trueport, by both settings of torch.onnx, and each file of torch.onnx is also put through
onnxslim and onnxsim. Then one process loads all files of a model, on one thread, and runs them in turn (A B C A B C
…), so that a busy moment of the machine hits all of them. CPU time, the smallest of the turns. Nodes are counted in
all graphs of a file, functions included, `Constant` nodes not.

onnxslim and onnxsim are no dependencies of ours: `pip install --no-deps onnxslim onnxsim`, or they are left out.

`--growth` compares the passes with onnxscript's optimiser, on the same decoder of 24 and 96 layers as lowered by
trueport.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import children, results
from benchmarks.children import HarnessError
from benchmarks.graph_models import GRAPHS
from benchmarks.graph_run import EXPORTS, SLIMMERS, Latency, Passes, exported, measured, passes_timed, slimmed

_LIMIT = 1_200.0
_LAYERS = (24, 96)
OURS = ("trueport", "trueport, opset 23")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.graph_quality", description=__doc__)
    parser.add_argument("--only", help="models whose name has this in it")
    parser.add_argument("--repeats", type=int, default=9, help="turns of each file")
    parser.add_argument("--growth", action="store_true", help="the passes on 24 and 96 layers instead")
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results")
    options = parser.parse_args(arguments)
    results.circumstances()
    libraries = ["onnxscript.optimizer", "onnxruntime", "onnxslim", "onnxsim"]
    children.preload([*libraries, "trueport.api", "benchmarks.graph_run"])
    if options.growth:
        return growth(options.keep)
    chosen = [name for name in GRAPHS if not options.only or options.only in name]
    found: dict[str, dict[str, Latency]] = {}
    for name in chosen:
        with tempfile.TemporaryDirectory(prefix="trueport-graphs-") as folder:
            files = _files(name, Path(folder))
            ending = children.run(measured, name, files, options.repeats, limit=_LIMIT)
            if ending.died:
                print(f"{name}: {ending.died} {ending.tail}", file=sys.stderr)
                continue
            found[name] = ending.value
            print(f"{name}: {len(files)} files", file=sys.stderr)
    text = report(found)
    print(text)
    if options.keep and not options.only:
        plain = {name: {file: asdict(each) for file, each in files.items()} for name, files in found.items()}
        results.keep("graph_quality", {"models": plain}, f"# How good the graphs are\n\n{text}")
    return 0


def _files(name: str, folder: Path) -> dict[str, str]:
    """By title, the files that there are. Who fails is told, and has none."""
    files: dict[str, str] = {}
    for title in EXPORTS:
        path = folder / f"{len(files)}.onnx"
        if _done(f"{name}, {title}", exported, name, title, str(path)):
            files[title] = str(path)
    for title, path_of in [(title, path) for title, path in files.items() if title not in OURS]:
        for slimmer in SLIMMERS:
            path = folder / f"{len(files)}.onnx"
            if _done(f"{name}, {title}, {slimmer}", slimmed, slimmer, path_of, str(path)):
                files[f"{title}, {slimmer}"] = str(path)
    return files


def _done(what: str, work: children.Work, *args: object) -> bool:
    try:
        ending = children.run(work, *args, limit=_LIMIT)
    except HarnessError as error:
        print(f"{what}: {str(error).strip().splitlines()[-1][:200]}", file=sys.stderr)
        return False
    if ending.died:
        print(f"{what}: {ending.died}", file=sys.stderr)
    return not ending.died


def report(found: Mapping[str, Mapping[str, Latency]]) -> str:
    titles = list(dict.fromkeys(title for files in found.values() for title in files))
    ratios = [f"{title} / best other" for title in OURS]
    rows: list[list[str]] = []
    for name, files in found.items():
        nodes = {title: float(each.nodes) for title, each in files.items() if not each.failed}
        rows.append([name, *(str(files[t].nodes) if t in files else "" for t in titles), *_ratios(nodes)])
    parts = ["Nodes", results.table(["model", *titles, *ratios], rows)]
    rows = []
    for name, files in found.items():
        for run in dict.fromkeys(run for each in files.values() for run in each.seconds):
            times = {title: each.seconds[run] for title, each in files.items() if run in each.seconds}
            cells = [f"{1e3 * times[t]:.2f}" if t in times else files[t].failed if t in files else "" for t in titles]
            rows.append([f"{name} {run}".strip(), *cells, *_ratios(times)])
    parts += ["CPU time of a run, ms", results.table(["model", *titles, *ratios], rows)]
    return "\n\n".join(parts)


def _ratios(measured: Mapping[str, float]) -> list[str]:
    """Each of ours to the best of all others, of whatever opset; files that do not run are left out."""
    theirs = [each for title, each in measured.items() if title not in OURS]
    return [f"{measured[title] / min(theirs):.2f}" if theirs and title in measured else "" for title in OURS]


def growth(keep: bool) -> int:
    rows: list[list[str]] = []
    found: dict[int, Passes] = {}
    for layers in _LAYERS:
        ending = children.run(passes_timed, layers, limit=_LIMIT)
        if ending.died:
            print(f"{layers} layers: {ending.died} {ending.tail}", file=sys.stderr)
            return 1
        each = found[layers] = ending.value
        ratio = f"{each.seconds / each.onnxscript_seconds:.4f}"
        numbers = [layers, each.nodes_before, each.nodes, f"{each.seconds:.3f}", f"{each.onnxscript_seconds:.2f}"]
        share = f"{each.seconds / each.export_seconds:.3f}"
        rows.append([*map(str, numbers), str(each.onnxscript_nodes), ratio, share])
    header = ["layers", "nodes", "after ours", "ours, s", "onnxscript, s", "nodes after it", "ratio", "of the export"]
    first, last = (found[layers].seconds for layers in _LAYERS)
    grown = f"Growth of the passes from 24 to 96 layers: {last / first:.2f} (4.0 is linear)"
    text = f"{results.table(header, rows)}\n\n{grown}"
    print(text)
    if keep:
        content = {str(layers): asdict(each) for layers, each in found.items()}
        results.keep("pass_growth", content, f"# What the passes cost\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

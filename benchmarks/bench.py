"""`make bench`: CPU time and memory of an export, trueport (without its check) against both settings of torch.onnx.

Each export runs in a new interpreter, on one thread, with everything that its exporter imports imported beforehand. The
exporters take turns (A B C A B C …), so that a busy moment of the machine hits all of them; medians are shown.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from statistics import median

from benchmarks import children, results
from benchmarks.bench_models import WORKLOADS
from benchmarks.bench_run import Sample, measure, modules_used
from benchmarks.children import HarnessError
from benchmarks.exporters import PEERS, TITLES, trueport_exists

HEAVY = 50_000_000
"""Bytes of weights from which the memory of an export says something about its weights."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    results.circumstances()
    exporters = [*(["trueport"] if options.trueport and trueport_exists() else []), *(PEERS if options.peers else [])]
    chosen = [
        name
        for name, workload in WORKLOADS.items()
        if (workload.quick or not options.quick) and (not options.only or re.search(options.only, name))
    ]
    if options.trueport and "trueport" not in exporters:
        print("trueport.export does not exist yet: only the peers run", file=sys.stderr)
    if not exporters or not chosen:
        print("nothing to run", file=sys.stderr)
        return 2
    modules = {exporter: _modules(exporter, options.limit) for exporter in exporters}
    samples: list[Sample] = []
    for name in chosen:
        for _ in range(options.repeats or WORKLOADS[name].repeats):
            for exporter in exporters:
                if any(s.failed for s in samples if (s.workload, s.exporter) == (name, exporter)):
                    continue  # it failed or ran into the limit: once is enough
                samples.append(_measure(name, exporter, modules[exporter], options.limit))
                print(_progress(samples[-1]), file=sys.stderr)
    text = report(samples, chosen, exporters)
    print(text)
    if options.peers and not options.only and not options.quick:
        title = "# What an export costs\n\n`make bench`: medians of exports in fresh processes, one thread.\n"
        results.keep(
            "bench", {"limit_seconds": options.limit, "samples": list(map(asdict, samples))}, f"{title}\n{text}"
        )
    return 0


def _modules(exporter: str, limit: float) -> list[str]:
    ending = children.run(modules_used, exporter, limit=limit, start="spawn")
    if ending.died:
        raise HarnessError(f"{exporter} could not export a small model: {ending.died} {ending.tail}")
    assert isinstance(ending.value, list)
    return ending.value


def _measure(workload: str, exporter: str, modules: list[str], limit: float) -> Sample:
    try:
        ending = children.run(measure, workload, exporter, modules, limit=limit, start="spawn", sample_memory=True)
    except HarnessError as error:
        return Sample(workload, exporter, failed=str(error).strip().splitlines()[-1][:200])
    if ending.died == "time limit":
        return Sample(workload, exporter, failed=f"over {limit:.0f} s")
    if ending.died:
        return Sample(workload, exporter, failed=ending.died)
    assert isinstance(ending.value, Sample)
    return replace(ending.value, peak_memory=ending.peak_memory.get("export", 0))


def report(samples: Sequence[Sample], workloads: Sequence[str], exporters: Sequence[str]) -> str:
    groups = {(w, e): [s for s in samples if (s.workload, s.exporter) == (w, e)] for w in workloads for e in exporters}
    header = ["model", "exports", *(f"{TITLES[e]}, s" for e in exporters)]
    if "trueport" in exporters:
        header += [f"trueport / {peer}" for peer in PEERS if peer in exporters]
    rows = []
    for workload in workloads:
        row: list[str] = [
            workload,
            _counts(groups, workload, exporters),
            *(_seconds(groups[workload, e]) for e in exporters),
        ]
        if "trueport" in exporters:
            ours = groups[workload, "trueport"]
            row += [_ratio(ours, groups[workload, peer]) for peer in PEERS if peer in exporters]
        rows.append(row)
    parts = [
        "CPU seconds of the export call (with the processes it starts, where they add to it)",
        results.table(header, rows),
    ]
    growth = [
        [
            f"24 → 96 layers, {sizes} sizes",
            *(_ratio(groups[f"decoder_96_{sizes}", e], groups[f"decoder_24_{sizes}", e]) for e in exporters),
        ]
        for sizes in ("fixed", "free")
        if {f"decoder_24_{sizes}", f"decoder_96_{sizes}"} <= set(workloads)
    ]
    titles = [TITLES[e] for e in exporters]
    if growth:
        parts += ["Growth of CPU time (4.0 is linear)", results.table(["", *titles], growth)]
    heavy = [w for w in workloads if _weights(groups, w, exporters) > HEAVY]
    memory = [
        [w, f"{_weights(groups, w, exporters) / 1e6:.0f}", *(_memory(groups[w, e]) for e in exporters)] for w in heavy
    ]
    if memory:
        parts += [
            "Peak memory above the built model (in parentheses: over the bytes of its weights)",
            results.table(["model", "weights, MB", *titles], memory),
        ]
    return "\n\n".join(parts)


def _median_cpu(samples: Sequence[Sample]) -> float | None:
    """Children included: a process that is started to do the work is part of the cost."""
    good = [s.cpu_seconds + s.children_cpu_seconds for s in samples if not s.failed]
    return median(good) if good else None


def _seconds(samples: Sequence[Sample]) -> str:
    cpu = _median_cpu(samples)
    if cpu is None:
        return samples[0].failed if samples else "–"
    inside = median(s.cpu_seconds for s in samples if not s.failed)
    return f"{cpu:.3f}" + (f" ({inside:.3f} without children)" if cpu - inside > 0.01 else "")


def _ratio(samples: Sequence[Sample], others: Sequence[Sample]) -> str:
    ours, theirs = _median_cpu(samples), _median_cpu(others)
    return f"{ours / theirs:.3f}" if ours is not None and theirs else "–"


def _memory(samples: Sequence[Sample]) -> str:
    good = [s for s in samples if not s.failed]
    if not good:
        return "–"
    return f"{median(s.memory_added for s in good) / 1e6:.0f} MB ({median(s.memory_over_weights for s in good):.2f})"


def _weights(groups: dict[tuple[str, str], list[Sample]], workload: str, exporters: Sequence[str]) -> int:
    return max((s.weight_bytes for e in exporters for s in groups[workload, e]), default=0)


def _counts(groups: dict[tuple[str, str], list[Sample]], workload: str, exporters: Sequence[str]) -> str:
    """How many exports stand behind each median: one is not a median, and the reader should see it."""
    counts = sorted({len(groups[workload, e]) for e in exporters})
    return "–".join(map(str, counts))


def _progress(sample: Sample) -> str:
    return f"{sample.workload} {sample.exporter}: {sample.failed or f'{sample.cpu_seconds:.2f} s'}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the small models")
    parser.add_argument("--only", metavar="REGEX", help="only the models whose name matches")
    parser.add_argument("--repeats", type=int, help="exports of each kind; the default is each model's own")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--trueport", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for one export, its imports included")
    return parser


if __name__ == "__main__":
    sys.exit(main())

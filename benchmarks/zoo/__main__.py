"""`python -m benchmarks.zoo`: real architectures, exported with free sizes and held against eager.

By default those that are written by hand, here (some of transformers) and in `../shared/zoo` where that folder is.
`--part transformers timm torchvision skipped` are all folders and files of these libraries, made small in a general
way (`trueport.zoo`); they need timm and torchvision. Where only a CUDA build of torchvision is to be had, `python -m
benchmarks.stand_ins folder/torchvision` lets it be imported beside a torch for the processor. Each is compared on its
example, on other sizes and on padded masks, by a judge without any code of trueport. A diagnosis counts where it names
a line of the library; its code tells a line that freezes a size (TP3xx) from an operator that we cannot translate
(TP4xx). `--peers dynamo` exports each by torch as well, in the same run. What is done is kept in `build/zoo.json`: a
run that was interrupted goes on.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import children, results
from benchmarks.exporters import PEERS, TITLES
from benchmarks.judge import Verdict
from benchmarks.zoo.names import PARTS
from benchmarks.zoo.run import EAGER, ZooRow, run_builds, run_model

LEDGER = Path(__file__).resolve().parents[2] / "build" / "zoo.json"
Found = dict[str, dict[str, ZooRow]]
"""By model and exporter."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    results.circumstances()
    children.preload(["onnxscript", "benchmarks.zoo.run", "trueport.api", "trueport.zoo.of_transformers"])
    exporters = ["trueport", *options.peers]
    names = [name for part in options.part for name in _in_turn(part, options.seed)]
    names = [name for name in dict.fromkeys(names) if not options.only or re.search(options.only, name)]
    names = names[: options.draw]
    fleeting = bool(options.only) and not options.keep
    found: Found = {} if options.fresh or fleeting else kept()
    if options.build_only:
        for name, row in run_builds(names, options.limit):
            found.setdefault(name, {})[EAGER] = row
            print(f"{name}: {told(row)}", file=sys.stderr, flush=True)
            if not fleeting:
                _keep(found)
        built = sum(not found[name][EAGER].why for name in names)
        print(f"{built} of {len(names)} run in eager")
        return 0
    for name in names:
        for exporter in exporters:
            before = found.get(name, {}).get(exporter)
            if before is not None and not (before.why and options.again):
                continue
            if exporter != "trueport" and found[name]["trueport"].judgement is None:
                continue  # eager does not run it
            row = run_model(name, exporter, options.limit)
            found.setdefault(name, {})[exporter] = row
            print(f"{name}, {exporter}: {told(row)}", file=sys.stderr, flush=True)
            if not fleeting:
                _keep(found)
    here = {name: found[name] for name in names}
    text = report({name: of for name, of in here.items() if of["trueport"].judgement is not None}, exporters)
    print(text)
    if not fleeting and options.part == ["hand"]:
        title = "# Real architectures, exported with free sizes"
        raw = {name: {each: one.to_json() for each, one in of.items()} for name, of in here.items()}
        results.keep("zoo", raw, f"{title}\n\n{(__doc__ or '').strip()}\n\n{text}")
    return 0


def _in_turn(part: str, seed: int) -> list[str]:
    """In an order by the seed: what a long run has done when it is stopped is a fair sample of the part."""
    names = PARTS[part]()
    return names if part == "hand" else random.Random(seed).sample(names, len(names))


def told(row: ZooRow) -> str:
    """One line of progress."""
    if row.judgement is None:
        return f"no model: {row.why}" if row.why else f"runs: {row.how}, {row.build_seconds:.1f} s"
    judged = row.judgement
    where = f"{judged.code} {judged.at}".strip()
    return f"{judged.verdict} {judged.cpu_seconds:.1f} s {where} {judged.detail} ({row.how}) {row.verified}"


def report(found: Mapping[str, Mapping[str, ZooRow]], exporters: Sequence[str]) -> str:
    """The counts, then what is not faithful, then all."""
    judged = {
        name: {each: of[each].judgement for each in exporters if each in of and of[each].judgement is not None}
        for name, of in found.items()
    }
    counts = []
    for exporter in exporters:
        verdicts = Counter(one.verdict for of in judged.values() if (one := of.get(exporter)) is not None)
        counts.append([TITLES[exporter], verdicts.total(), *(verdicts[verdict] for verdict in Verdict)])
    rows = []
    for name, of in sorted(judged.items(), key=lambda item: _is_faithful(item[1].get("trueport"))):
        ours = of.get("trueport")
        cells = [
            part
            for each in exporters
            for one in [of.get(each)]
            for part in ((one.verdict.value, f"{one.cpu_seconds:.1f}") if one else ("", ""))
        ]
        rows.append([name, *cells, f"{ours.code} {ours.at}".strip() if ours else ""])
    columns = [part for each in exporters for part in (TITLES[each], "CPU s")]
    return "\n\n".join(
        (
            results.table(["", "models", *(verdict.value for verdict in Verdict)], counts),
            "Those that are not faithful come first. The seconds are the processor's, with the check.",
            results.table(["model", *columns, "code and line"], rows),
        )
    )


def _is_faithful(judged: object) -> bool:
    return getattr(judged, "verdict", None) is Verdict.FAITHFUL


def kept() -> Found:
    if not LEDGER.exists():
        return {}
    raw = json.loads(LEDGER.read_text())
    return {name: {each: ZooRow.from_json(one) for each, one in of.items()} for name, of in raw.items()}


def _keep(found: Found) -> None:
    LEDGER.parent.mkdir(exist_ok=True)
    new = LEDGER.with_suffix(".new")
    new.write_text(json.dumps({name: {each: one.to_json() for each, one in of.items()} for name, of in found.items()}))
    new.replace(LEDGER)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__)
    parser.add_argument("--only", metavar="REGEX", help="these only; nothing is kept, unless with --keep")
    parser.add_argument("--keep", action="store_true", help="keep what is done, also with --only")
    parser.add_argument("--part", nargs="*", choices=list(PARTS), default=["hand"])
    parser.add_argument("--build-only", action="store_true", help="make the models, and run them in eager")
    parser.add_argument("--draw", type=int, metavar="N", help="only the first N in the order of --seed")
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=[])
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of the processor for one model")
    parser.add_argument("--again", action="store_true", help="also what eager did not run before")
    parser.add_argument("--fresh", action="store_true", help="also what was done before")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""`python -m benchmarks.zoo`: real architectures, exported with free sizes and held against eager.

Some of transformers are here; those of `../shared/zoo` (transformers, timm, torchvision) come with them where that
folder is. Each is compared on its example, on other sizes and on padded masks, by a judge without any code of trueport.
A diagnosis counts where it names a line of the library; its code tells a line that freezes a size (TP3xx) from an
operator that we cannot translate (TP4xx). `--peers dynamo` exports each by torch as well, in the same run. What is done
is kept in `build/zoo.json`: a run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import children, results
from benchmarks.exporters import EXPORTERS, TITLES
from benchmarks.judge import Judgement, Verdict
from benchmarks.zoo_models import ZOO, shared_names
from benchmarks.zoo_run import run_model

LEDGER = Path(__file__).resolve().parents[1] / "build" / "zoo.json"
Found = dict[str, dict[str, Judgement]]
"""By model and exporter."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    results.circumstances()
    children.preload(["onnxscript", "benchmarks.zoo_run", "trueport.api"])
    exporters = ["trueport", *options.peers]
    names = [name for name in (*ZOO, *shared_names()) if not options.only or re.search(options.only, name)]
    found: Found = {} if options.fresh or options.only else _kept()
    for name in names:
        for exporter in exporters:
            if exporter in found.get(name, {}):
                continue
            judged = run_model(name, exporter, options.limit)
            found.setdefault(name, {})[exporter] = judged
            print(f"{name}, {exporter}: {judged.verdict} {judged.cpu_seconds:.1f} s {judged.detail}", file=sys.stderr)
            if not options.only:
                _keep(found)
    text = report({name: found[name] for name in names}, exporters)
    print(text)
    if not options.only:
        title = "# Real architectures, exported with free sizes"
        raw = {name: {each: asdict(one) for each, one in of.items()} for name, of in found.items()}
        results.keep("zoo", raw, f"{title}\n\n{(__doc__ or '').strip()}\n\n{text}")
    return 0


def report(found: Mapping[str, Mapping[str, Judgement]], exporters: Sequence[str]) -> str:
    """The counts, then what is not faithful, then all."""
    counts = [
        [TITLES[exporter], len(found), *(Counter(of[exporter].verdict for of in found.values())[v] for v in Verdict)]
        for exporter in exporters
    ]
    rows = [
        [
            name,
            *(part for each in exporters for part in (of[each].verdict.value, f"{of[each].cpu_seconds:.1f}")),
            f"{of['trueport'].code} {of['trueport'].at}".strip(),
        ]
        for name, of in sorted(found.items(), key=lambda item: item[1]["trueport"].verdict is Verdict.FAITHFUL)
    ]
    columns = [part for each in exporters for part in (TITLES[each], "CPU s")]
    return "\n\n".join(
        (
            results.table(["", "models", *(verdict.value for verdict in Verdict)], counts),
            "Those that are not faithful come first. The seconds are the processor's, with the check.",
            results.table(["model", *columns, "code and line"], rows),
        )
    )


def _kept() -> Found:
    if not LEDGER.exists():
        return {}
    raw = json.loads(LEDGER.read_text())
    return {
        name: {each: Judgement(**{**one, "verdict": Verdict(one["verdict"])}) for each, one in of.items()}
        for name, of in raw.items()
    }


def _keep(found: Found) -> None:
    LEDGER.parent.mkdir(exist_ok=True)
    new = LEDGER.with_suffix(".new")
    new.write_text(json.dumps({name: {each: asdict(one) for each, one in of.items()} for name, of in found.items()}))
    new.replace(LEDGER)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__)
    parser.add_argument("--only", metavar="REGEX", help="these only; nothing is kept")
    parser.add_argument("--peers", nargs="*", choices=[name for name in EXPORTERS if name != "trueport"], default=[])
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one model")
    parser.add_argument("--fresh", action="store_true", help="also what was done before")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""`python -m benchmarks.zoo.page`: what `build/zoo.json` holds, as `results/zoo_all.json` and `docs/zoo.md`."""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import results
from benchmarks.judge import Verdict
from benchmarks.zoo.__main__ import Found, kept
from benchmarks.zoo.names import PARTS, folders_without_model
from benchmarks.zoo.run import ZooRow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "zoo.md"
WHO = {
    "transformers": "transformers, one of each model folder",
    "skipped": "transformers, the classes that its own ONNX tests skip",
    "timm": "timm, one of each file",
    "torchvision": "torchvision, one of each file",
}
WRONG = (Verdict.SILENT, Verdict.INVALID)
INTRO = """\
# The zoo

Architectures of transformers, timm and torchvision, exported by trueport with free sizes. Nothing is downloaded: each
model is made from the library's own configuration, made small, and its weights are noise (`trueport export
transformers:llama` does the same). A judge without any code of trueport runs each file in ONNX Runtime on the example,
on other sizes and on padded masks, and compares with eager. Made by `python -m benchmarks.zoo --part transformers timm
skipped torchvision` and `python -m benchmarks.zoo.page`; the rows are in `benchmarks/results/zoo_all.json`.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    argparse.ArgumentParser(prog="python -m benchmarks.zoo.page", description=__doc__).parse_args(arguments)
    found = kept()
    members = {part: PARTS[part]() for part in WHO}
    raw = {name: {each: row.to_json() for each, row in of.items()} for name, of in found.items()}
    results.write_json(results.FOLDER / "zoo_all.json", {"rows": raw, "members": members})
    PAGE.write_text(page(found, members))
    return 0


def page(found: Found, members: Mapping[str, Sequence[str]]) -> str:
    ours = {name: of["trueport"] for name, of in found.items() if "trueport" in of}
    parts = [INTRO, _counts(found, members), _not_faithful(ours), _causes(ours), _peers(found)]
    parts += [_not_run(found), _scaling(), _faithful(ours)]
    commits = Counter(row.commit for row in ours.values() if row.commit)
    where = ", ".join(f"{key} {value}" for key, value in results.circumstances().items() if key != "commit")
    parts.append(f"{where}; commits {', '.join(f'{commit} ({count})' for commit, count in commits.most_common())}")
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def _counts(found: Found, members: Mapping[str, Sequence[str]]) -> str:
    rows = []
    for part, names in members.items():
        built = [_runs(found.get(name, {})) for name in names]
        tried = [found[name]["trueport"].judgement for name in names if "trueport" in found.get(name, {})]
        judged = [one for one in tried if one is not None]
        verdicts = Counter(one.verdict for one in judged)
        share = f"{100 * verdicts[Verdict.FAITHFUL] / len(judged):.1f} %" if judged else ""
        eager = [built.count(each) for each in (True, False)]
        rows.append([WHO[part], len(names), *eager, len(judged), *(verdicts[each] for each in Verdict), share])
    header = [
        "",
        "all",
        "eager runs",
        "does not run",
        "exported",
        *(each.value for each in Verdict),
        "of these faithful",
    ]
    return f"""{results.table(header, rows)}

*Diagnosed*: refused, at a line of the library and with a reason. *Refused*: without a line. *Silent*: a file that gives
something else than eager, without a word. *Invalid*: a file that does not run. *Crashed*: it died, or used up its time.
The order of the run is drawn by lot, so what was exported until now is a fair sample of each part.
{len(folders_without_model())} further folders of transformers hold no network of their own: tokenizers, and other
names of models that are here."""


def _runs(of: Mapping[str, ZooRow]) -> bool | None:
    """Whether a small one runs in eager; None: not tried."""
    if any(row.judgement is not None or not row.why for row in of.values()):
        return True
    return False if of else None


def _not_faithful(ours: Mapping[str, ZooRow]) -> str:
    rows = [
        [name, one.verdict.value, one.code, one.at, _cell(one.detail), f"{one.cpu_seconds:.1f}"]
        for name, row in sorted(ours.items(), key=lambda item: _order(item[1]))
        if (one := row.judgement) is not None and one.verdict is not Verdict.FAITHFUL
    ]
    return "## What is not faithful\n\n" + results.table(["model", "verdict", "code", "line", "why", "CPU s"], rows)


def _causes(ours: Mapping[str, ZooRow]) -> str:
    """By code and line: one line of a library often stands for many models."""
    by_cause: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for name, row in ours.items():
        one = row.judgement
        if one is not None and one.verdict is not Verdict.FAITHFUL:
            by_cause[one.code or one.verdict.value, one.at, one.detail if one.code else ""].append(
                name.partition(":")[2]
            )
    rows = [
        [len(names), code, at, _cell(why), _cell(", ".join(names), 160)]
        for (code, at, why), names in sorted(by_cause.items(), key=lambda item: -len(item[1]))
    ]
    return "## By cause\n\n" + results.table(["models", "code", "line", "why", "which"], rows)


def _not_run(found: Found) -> str:
    none = {name: next(row.why for row in of.values() if row.why) for name, of in found.items() if _runs(of) is False}
    rows = [[name, _cell(why.partition("runs in eager: ")[2] or why)] for name, why in sorted(none.items())]
    title = "## What no small configuration of ours makes eager run"
    return f"{title}\n\n{results.table(['model', 'why'], rows)}" if rows else ""


def _peers(found: Found) -> str:
    rows, verdicts, wrong, missed = [], Counter[Verdict](), [], 0
    for name, of in sorted(found.items()):
        theirs, own = of.get("dynamo"), of.get("trueport")
        if theirs is None or theirs.judgement is None or own is None or own.judgement is None:
            continue
        one = theirs.judgement
        verdicts[one.verdict] += 1
        accused = theirs.verified not in ("", "agrees") and not theirs.verified.startswith("no verdict")
        is_wrong = one.verdict in WRONG or bool(theirs.confirmed)
        if is_wrong:
            seen = one.detail if one.verdict in WRONG else f"at the input that verify shows: {theirs.confirmed}"
            smallest = re.search(r"smallest: [^|]+", theirs.verified)
            shown = f"{theirs.verified.partition(' | ')[0]}; {smallest[0]}" if smallest else theirs.verified
            wrong.append([name, _cell(seen), _cell(shown, 400)])
        said = ("wrong" if is_wrong else "not confirmed") if accused else theirs.verified.partition(":")[0]
        missed += is_wrong and not accused
        own_cells = [own.judgement.verdict.value, f"{own.judgement.cpu_seconds:.1f}"]
        rows.append([name, *own_cells, one.verdict.value, f"{one.cpu_seconds:.1f}", said])
    if not rows:
        return ""
    doubtful = sum(row[5] == "not confirmed" for row in rows)
    told = ", ".join(f"{verdicts[each]} {each.value}" for each in Verdict if verdicts[each])
    return f"""## torch.onnx.export(dynamo=True) beside it

{len(rows)} of them, drawn by lot (seed 18), with the same free sizes; on the judge's own inputs {told}. `trueport
verify` was given each file that was written, and searched further. An accusation is printed only where the judge, which
has no code of trueport, sees the difference as well, on its own inputs or at the one that verify shows: {len(wrong)}
files. {doubtful} more were accused and not confirmed, {missed} are wrong and were not accused. Look at the input before
you judge: a row whose mask is all zeros, or very large values, may be none that your users send.

{results.table(["model", "the judge", "trueport verify"], wrong)}

{results.table(["model", "trueport", "CPU s", "dynamo=True", "CPU s", "trueport verify"], rows)}"""


def _scaling() -> str:
    """What `python -m benchmarks.sweep_scaling` found, in a paragraph."""
    file = results.FOLDER / "sweep_scaling.json"
    if not file.exists():
        return ""
    found = json.loads(file.read_text())
    engine, mean, simulated = found["engine"], found["mean"], found["simulated"]["200"]
    engine_share = 100 * (simulated["makespan"] / simulated["makespan_without_engine"] - 1)
    return f"""## On many machines

A sweep of {simulated["models"]} models over 200 workers (`trueport sweep --on dask=tcp://…`), where one model in a
hundred loses its worker, was simulated with the times of these models ({mean:.1f} s on average, with the start of a
process that imports torch) and the engine's own cost, which was measured:
{1000 * engine["seconds_a_task"]:.1f} ms of the
scheduler's process for a model. It takes {simulated["makespan"] / 60:.0f} minutes. The engine makes it
{engine_share:.2f} % longer, and {100 * simulated["lost"] / simulated["useful"]:.2f} % of the work is done twice.
The scheduler's process grows by {engine["memory_a_task"] * simulated["models"] / 2**20:.0f} MB for the futures. What
breaks first is the scheduler's one core, at about {mean / engine["seconds_a_task"]:.0f} workers
([sweep_scaling.md](../benchmarks/results/sweep_scaling.md))."""


def _faithful(ours: Mapping[str, ZooRow]) -> str:
    rows, ratios = [], []
    for name, row in sorted(ours.items()):
        one = row.judgement
        if one is None or one.verdict is not Verdict.FAITHFUL:
            continue
        ratio = row.onnx_ms / row.eager_ms if row.eager_ms else 0.0
        ratios.append(ratio)
        note = "by eager's own rounding" if one.detail else ""
        rows.append([name, row.how, row.inputs, f"{one.cpu_seconds:.1f}", f"{ratio:.2f}", note])
    middle = f" The middle one is {statistics.median(ratios):.2f}." if ratios else ""
    return f"""## What is faithful

The latency is the file's in ONNX Runtime by eager's, on the example, one thread.{middle} These models are small: where
a network has few numbers, much of eager's time is Python's. *By eager's own rounding*: two sums in another order differ
by more than the judge allows, and eager in float32 is as far from the same model in float64.

{results.table(["model", "class and size", "inputs", "CPU s", "latency", ""], rows)}"""


def _order(row: ZooRow) -> tuple[int, str]:
    worst_first = (
        Verdict.SILENT,
        Verdict.INVALID,
        Verdict.CRASHED,
        Verdict.REFUSED,
        Verdict.DIAGNOSED,
        Verdict.FAITHFUL,
    )
    return (worst_first.index(row.judgement.verdict), row.judgement.code) if row.judgement is not None else (9, "")


def _cell(text: str, most: int = 220) -> str:
    plain = " ".join(text.split()).replace("|", "/").replace("<", "&lt;").replace("error[TP001]: ", "")
    return plain if len(plain) <= most else plain[: most - 1] + "…"


if __name__ == "__main__":
    sys.exit(main())

"""`results/matrix.md`: the settings and their parts in one table, then each difference from the reference by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from benchmarks import results
from benchmarks.matrix import inside, parts
from benchmarks.matrix.ledger import Ledger, Outcome, Row
from benchmarks.matrix.reasons import reason_for
from benchmarks.matrix.venvs import Setting

REFERENCE = Setting("2.13", "3.11")
"""The one that development runs with."""

_ABSENT = Outcome("not there", "")


def counts(row: Row) -> str:
    """`16 faithful`, or `13 faithful, 3 diagnosed`."""
    found = Counter(outcome.verdict.split()[0] for outcome in row.outcomes.values())
    return ", ".join(f"{count} {verdict}" for verdict, count in found.most_common())


def differences(row: Row, reference: Row) -> Iterator[tuple[str, Outcome, Outcome]]:
    """Each name whose verdict is another one: the name, what it is here, and what it is there."""
    for name in dict.fromkeys((*reference.outcomes, *row.outcomes)):
        here, there = row.outcomes.get(name, _ABSENT), reference.outcomes.get(name, _ABSENT)
        if here.verdict != there.verdict:
            yield name, here, there


def write(ledger: Ledger) -> None:
    (results.FOLDER / "matrix.md").write_text(text(ledger))


def text(ledger: Ledger) -> str:
    rows = list(ledger)
    torch_rows = [row for row in rows if not row.setting.startswith("onnxruntime")]
    runtime_rows = [row for row in rows if row.setting.startswith("onnxruntime")]
    sections = [
        "# What was tried: torch, Python, the lowest dependencies, runtimes",
        "`make matrix`, `make matrix-lowest`; each setting in a venv of its own. The parts: the canary "
        "(`torch_internals/contract.py`), the shared seeds and reports (`python -m benchmarks.cases --no-peers`), all "
        "of `tests/control_flow`, and a sample of torch's own operator samples (OpInfo, float32, free sizes; operators "
        f"whose name has crc32 divisible by {inside.SHARE}, the first {inside.SAMPLES} samples of each"
        f"{''.join(f'; without `{name}`: {why}' for name, why in inside.LEFT_OUT.items())}). With the "
        f"lowest dependencies the tests are {', '.join(f'`{path}`' for path in parts.LOWEST_TESTS)}.",
        f"In brackets: how many differ from {REFERENCE.title}. An operator that the OpInfo of a release does not have "
        "cannot differ; it is counted apart.",
        _table(torch_rows, ledger),
    ]
    if runtime_rows:
        sections += [
            "## Runtimes",
            f"The files that {REFERENCE.title} writes for the seeds and reports that export, with the opset that is "
            "the default and with the lowest one, loaded without torch and compared with what eager gave.",
            results.table(
                ["runtime", "numpy", *dict.fromkeys(row.part for row in runtime_rows)],
                list(_runtime_lines(runtime_rows)),
            ),
        ]
    sections += ["## Differences", *(_differences(row, ledger) for row in torch_rows), *map(_not_good, runtime_rows)]
    sections += ["## Versions", _versions(rows)]
    return "\n\n".join(section for section in sections if section) + "\n"


def _table(rows: Sequence[Row], ledger: Ledger) -> str:
    columns = list(dict.fromkeys(row.part for row in rows))
    lines = []
    for setting in dict.fromkeys(row.setting for row in rows):
        found = [ledger.get(setting, part) for part in columns]
        lines.append([setting, *(_cell(row, ledger) for row in found)])
    return results.table(["", *columns], lines)


def _cell(row: Row | None, ledger: Ledger) -> str:
    if row is None:
        return "–"
    reference = ledger.get(REFERENCE.title, row.part)
    if reference is None or reference is row:
        return counts(row)
    found = list(differences(row, reference))
    absent = sum(_is_absent(row, here) for _, here, _ in found)
    return f"{counts(row)} ({len(found) - absent}{f'; {absent} not in OpInfo' if absent else ''})"


def _is_absent(row: Row, here: Outcome) -> bool:
    """A sample that this release of torch does not have."""
    return row.part == "operators" and here is _ABSENT


def _differences(row: Row, ledger: Ledger) -> str:
    reference = ledger.get(REFERENCE.title, row.part)
    if reference is None or reference is row:
        return _not_good(row)
    found = list(differences(row, reference))
    if not found:
        return ""
    lines = []
    for name, here, there in found:
        absent = "OpInfo of this release has no such operator." if _is_absent(row, here) else ""
        why = absent or reason_for(row.setting, row.part, name) or here.detail or there.detail
        lines.append(
            f"- `{name}`: {here.verdict}; {REFERENCE.torch}: {there.verdict}. {' '.join(why.split())}".rstrip()
        )
    share = f"{len(found)} of {len(reference.outcomes)}"
    return "\n".join([f"### {row.setting}: {row.part}, {share}", "", *lines])


def _not_good(row: Row) -> str:
    """Of what has nothing to be compared with."""
    bad = {name: outcome for name, outcome in row.outcomes.items() if not parts.good(outcome)}
    if not bad:
        return ""
    lines = []
    for name, outcome in bad.items():
        why = reason_for(row.setting, row.part, name) or outcome.detail
        lines.append(f"- `{name}`: {outcome.verdict}. {' '.join(why.split())}".rstrip())
    return "\n".join([f"### {row.setting}: {row.part}, {len(bad)} of {len(row.outcomes)}", "", *lines])


def _runtime_lines(rows: Sequence[Row]) -> Iterator[list[str]]:
    columns = list(dict.fromkeys(row.part for row in rows))
    for setting in dict.fromkeys(row.setting for row in rows):
        mine = {row.part: row for row in rows if row.setting == setting}
        versions = next(iter(mine.values())).versions
        yield [
            f"onnxruntime {versions['onnxruntime']}",
            versions["numpy"],
            *(counts(mine[part]) if part in mine else "–" for part in columns),
        ]


def _versions(rows: Sequence[Row]) -> str:
    lines = []
    for setting in dict.fromkeys(row.setting for row in rows):
        mine = [row for row in rows if row.setting == setting]
        commits = ", ".join(dict.fromkeys(row.commit for row in mine))
        names = dict.fromkeys(name for row in mine for name in row.versions)
        found = {name: " and ".join(dict.fromkeys(row.versions[name] for row in mine)) for name in names}
        installed = ", ".join(f"{name} {versions}" for name, versions in found.items())
        lines.append(f"- {setting}: {installed}; trueport at {commits}")
    return "\n".join(lines)

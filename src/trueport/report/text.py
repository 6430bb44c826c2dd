"""Diagnostics and reports as text, in the look of a compiler.

Everything is first laid out as styled lines. `*_text` joins them without styles; `print_to` colours them, and only on a
terminal that wants colour (`NO_COLOR` is respected by rich). Both take their lines from `_printable`, so that nothing
that a file or a model is called can move the cursor, or begin a line of its own.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from trueport.diagnostics.base import Diagnostic
from trueport.report.frame import Line, frame_lines, gutter_of
from trueport.report.model import CheckedInput, Report, Verdict
from trueport.report.order import grouped
from trueport.source import Where, visible

MOST_FACTS = 6
MOST_LETTERS = 600
MOST_AGAIN = 12
_SHOWN = 3
"""What keeps a finding on one screen."""

_STYLES = {
    "error": "bold red",
    "warning": "bold yellow",
    "note": "bold cyan",
    "good": "bold green",
    "secondary": "bold blue",
    "strong": "bold",
    "gutter": "blue",
    "path": "",
    "faint": "dim",
    "": "",
}


def diagnostic_lines(found: Diagnostic, again: Sequence[Where] = (), width: int | None = None) -> Iterator[Line]:
    """One finding: its head, the code frame, what was seen, the fix, and where to read more.

    `again` are other lines where the same was found. Lines are broken at `width`, if there is one.
    """
    weight = found.weight.value
    code = f"{weight}[{found.code}]"
    room = width and width - len(code) - 2
    first, *rest = [part for line in _cut(found.message).splitlines() or [""] for part in _broken(line, room)]
    yield ((code, weight), (f": {first}", "strong"))
    for line in rest:
        yield ((" " * (len(code) + 2) + line, "strong"),)
    gutter = gutter_of(found)
    yield from frame_lines(found, width)
    if again:
        lines = ", ".join(str(where.line) for where in again[:MOST_AGAIN])
        more = f" and {len(again) - MOST_AGAIN} more" if len(again) > MOST_AGAIN else ""
        yield from _remark("also:  ", f"line{'s' * (len(again) > 1)} {lines}{more}", gutter, width)
    for index, fact in enumerate(found.seen[:MOST_FACTS]):
        yield from _remark("seen:  " if index == 0 else "       ", _cut(fact), gutter, width)
    if len(found.seen) > MOST_FACTS:
        yield from _remark("       ", f"… {len(found.seen) - MOST_FACTS} more: --output-format json", gutter, width)
    if found.fix:
        yield from _remark("fix:   ", _cut(found.fix), gutter, width)
    yield from _remark("more:  ", f"trueport explain {found.code}", gutter, width)


def _remark(head: str, text: str, gutter: int, width: int | None) -> Iterator[Line]:
    """`= head text`; further lines of the text are aligned below the first."""
    mark = " = " if head.strip() else "   "
    margin = gutter + len(mark) + len(head)
    lines = [part for line in text.splitlines() or [""] for part in _broken(line, width and width - margin)]
    yield ((" " * gutter + mark, "gutter"), (head, "faint"), (lines[0], ""))
    for line in lines[1:]:
        yield ((" " * margin, ""), (line, ""))


def _broken(text: str, room: int | None) -> list[str]:
    if room is None or len(text) <= room:
        return [text]
    return textwrap.wrap(text, max(room, 20), break_long_words=False, break_on_hyphens=False) or [""]


def _cut(text: str) -> str:
    """Messages of other libraries can be pages long; the whole of them is in the JSON."""
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"


def diagnostics_lines(found: Iterable[Diagnostic], width: int | None = None) -> Iterator[Line]:
    """Several findings in order, with an empty line between them."""
    for index, told in enumerate(grouped(found)):
        if index:
            yield ()
        yield from diagnostic_lines(told.found, told.again, width)


def report_lines(report: Report, width: int | None = None) -> Iterator[Line]:
    """The whole report: the verdict, then the facts and the findings; where something is wrong, the findings first."""
    yield headline(report)
    if report.ok:
        yield from _fact_lines(report)
        if report.diagnostics:
            yield ()
            yield from diagnostics_lines(report.diagnostics, width)
    else:
        yield ()
        yield from diagnostics_lines(report.diagnostics, width)
        facts = list(_fact_lines(report))
        if facts:
            yield ()
            yield from facts


def _fact_lines(report: Report) -> Iterator[Line]:
    facts = list(_facts(report))
    width = max((len(head) for head, _ in facts), default=0)
    for head, text in facts:
        yield ((f"  {head:<{width}}  ", "faint"), (_cut(text), ""))


def headline(report: Report) -> Line:
    """The verdict: one word with its style, then the model, then what was compared."""
    if not report.ok:
        count = len(report.errors)
        if report.path:  # a file that is there already, and was compared
            return (("unfaithful ", "error"), (f"{report.path} is not {report.model}", "strong"))
        return (("refused ", "error"), (f"{report.model}: {count} error{'s' if count > 1 else ''}", "strong"))
    to = f" → {report.path}" if report.path else ""
    if not report.verified:
        return (("not checked ", "warning"), (f"{report.model}{to}", "strong"))
    said = f"  {tally(report.checks, report.undecided, report.compared_with, bool(report.budget))}"
    if report.partly:
        return (("checked in part ", "warning"), (f"{report.model}{to}", "strong"), (said, ""))
    verdict = "within its budget " if report.budget else "faithful "
    return ((verdict, "good"), (f"{report.model}{to}", "strong"), (said, ""))


def tally(
    checks: Iterable[CheckedInput], undecided: Sequence[str] = (), reference: str = "eager", close: bool = False
) -> str:
    """`equal to eager on 30 of 32 inputs, 2 not decided, worst difference 2.4e-07 (allowed 1.3e-05)`."""
    every = list(checks)
    equal = sum(one.verdict in (Verdict.EQUAL, Verdict.ALIKE) for one in every)
    random = any(one.verdict is Verdict.ALIKE for one in every)
    how = f"{'distributed as' if random else 'close to' if close else 'equal to'} {reference}"
    count = len(every) + len(undecided)
    said = f"{how} on {equal} of {count} input{'' if count == 1 else 's'}"
    said += f", {len(undecided)} not decided" if undecided else ""
    measured = [one for one in every if one.worst_error is not None]
    if not measured:
        return said
    worst = max(measured, key=lambda one: one.worst_error or 0.0)
    allowed = f" (allowed {worst.allowed:.2g})" if worst.allowed is not None else ""
    return f"{said}, worst difference {worst.worst_error:.2g}{allowed}"


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    """Head and text of each line below the headline; a head is said once."""

    def listed(head: str, texts: Iterable[object]) -> Iterator[tuple[str, str]]:
        for index, text in enumerate(texts):
            yield (head if index == 0 else "", str(text))

    yield from listed("inputs", report.inputs)
    yield from listed("outputs", report.outputs)
    yield from listed("left out", (f"{name} = {value}, not a tensor" for name, value in report.left_out.items()))
    yield from listed("free sizes", report.free_sizes)
    yield from listed("constants", (f"{name} = {value}" for name, value in report.constants.items()))
    yield from listed("assumed", report.assumptions)
    if report.calls is not None:
        names = ", ".join(dict.fromkeys(one.split(" ", 1)[0] for one in report.calls.by_design))
        differ = [f"differ from eager on NaN and infinities, by design: {names}"] if names else []
        yield from listed("calls", [report.calls, *differ])
    if report.budget:
        yield "budget", report.budget
    yield from listed("checked", _checked(report.checks))
    yield from listed("not decided", _first(report.undecided))
    if report.endless:
        yield "not run", f"{report.endless} inputs on which a loop of eager's made too many rounds"
    yield from listed("decided", report.decisions)
    if report.seed is not None:
        searched = (
            f", {report.searched} input{'s' * (report.searched > 1)} searched for other ways" if report.searched else ""
        )
        yield "seed", f"{report.seed}{searched}"
    if report.nodes is not None:
        yield "graph", f"{report.nodes} nodes" + (f", opset {report.opset}" if report.opset else "")
    called = [f"{name}, {count} call{'s' * (count != 1)}" for name, count in report.functions.items()]
    yield from listed("functions", _first(called))
    if report.seconds:
        yield "time", ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in report.seconds.items())
    if report.versions and report.ok:  # one who has to mend a line does not look for them; the JSON has them
        yield "versions", ", ".join(f"{name} {version}" for name, version in report.versions.items())


def _first(texts: Sequence[str]) -> Iterator[str]:
    yield from texts[:_SHOWN]
    if len(texts) > _SHOWN:
        yield f"… {len(texts) - _SHOWN} more: --output-format json"


def _checked(checks: tuple[CheckedInput, ...]) -> Iterator[str]:
    """Which sizes and kinds of values were tried, then one by one those that failed. JSON and HTML list them all."""
    sizes: dict[str, set[int]] = {}
    for one in checks:
        for name, size in one.sizes.items():
            sizes.setdefault(name, set()).add(size)
    for name, tried in sizes.items():
        yield f"{name} = {', '.join(map(str, sorted(tried)))}"
    if checks:
        yield f"values: {', '.join(dict.fromkeys(word for one in checks for word in one.family.split(', ')))}"
    for one in checks:
        if one.verdict not in (Verdict.EQUAL, Verdict.ALIKE):
            error = f", difference {one.worst_error:.2g}" if one.worst_error is not None else ""
            yield f"{one}: {one.verdict.value}{error}"


def _printable(lines: Iterable[Line]) -> Iterator[Line]:
    for line in lines:
        yield tuple((visible(text), style) for text, style in line)


def _plain(lines: Iterable[Line]) -> str:
    return "\n".join("".join(text for text, _ in line).rstrip() for line in _printable(lines))


def diagnostic_text(found: Diagnostic) -> str:
    """One finding as plain text."""
    return _plain(diagnostic_lines(found))


def diagnostics_text(found: Iterable[Diagnostic]) -> str:
    """Several findings as plain text."""
    return _plain(diagnostics_lines(found))


def headline_text(report: Report) -> str:
    """The verdict in one line."""
    return _plain([headline(report)])


def report_text(report: Report) -> str:
    """A whole report as plain text."""
    return _plain(report_lines(report))


def print_to(console: Console, lines: Iterable[Line]) -> None:
    """Print styled lines as they are: never wrapped, so that carets stay under their letters."""
    for line in _printable(lines):
        coloured = Text.assemble(*((text, _STYLES[style]) for text, style in line))
        coloured.rstrip()
        console.print(coloured, soft_wrap=True, highlight=False)

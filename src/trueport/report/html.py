"""Reports as one HTML file that opens offline: nothing is fetched, and nothing in it can make the browser fetch or run.

Everything in a report may have been named by a stranger. So each text is made visible and escaped where it enters the
page, the data for the script are JSON in which no letter means something to HTML, and the page forbids the browser all
scripts but its own two, by their hashes. The script writes texts as texts, never as markup.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from trueport.report import plots
from trueport.report.frame import shown_path
from trueport.report.graph import GraphSummary, NodeSummary
from trueport.report.model import CallsSummary, Report, Verdict
from trueport.report.order import grouped
from trueport.report.text import diagnostic_text, headline
from trueport.source import Where, visible

_WHOLE = 1500
"""Lines of a file that are shown all; of a longer one, those around the lines that matter."""
_AROUND = 15


@dataclass(frozen=True, slots=True)
class _SourceFile:
    """A file of the user's, as the page shows it: its name and its lines with their numbers."""

    name: str
    lines: tuple[tuple[int, str], ...]


def report_html(report: Report) -> str:
    """The report as a page. Everything that came from the user's model is escaped, as HTML and for the eye."""
    verdict, sources = headline(report), _sources(report)
    places = {file: index for index, file in enumerate(sources)}
    return _template("page.html.jinja").render(
        report=report,
        verdict=verdict,
        tally=verdict[2][0].strip() if len(verdict) > 2 else f"compared on {len(report.checks)} inputs",
        rendered=diagnostic_text,
        told=grouped(report.diagnostics),
        unchecked=list(_unchecked(report)),
        good=(Verdict.EQUAL, Verdict.ALIKE),
        sources=list(sources.values()),
        found={_anchor(one.where, places) for one in report.diagnostics},
        anchor=lambda where: _anchor(where, places),
        path=shown_path,
        plots=plots,
        style=Markup(_asset("page.css")),
        theme=Markup(_asset("theme.js")),
        script=Markup(_asset("page.js")),
        data=Markup(_embedded(_data(report, places, sources))),
        policy=_policy(),
    )


def report_fragment(report: Report, signature: str = "") -> str:
    """The report for a cell of a notebook: no script, no style of the page's own."""
    return _template("fragment.html.jinja").render(
        verdict=headline(report),
        signature=signature,
        report=report,
        rendered=diagnostic_text,
        told=grouped(report.diagnostics),
        unchecked=list(_unchecked(report)),
    )


@functools.cache
def _template(name: str) -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_printable
    )
    return environment.from_string(_asset(name))


@functools.cache
def _asset(name: str) -> str:
    return files(__package__).joinpath("page", name).read_text(encoding="utf-8")


def _printable(value: object) -> object:
    """What the template shows of a value. The page's own text goes this way too, and is markup already."""
    return value if isinstance(value, Markup) else visible(str(value), keep="\n")


@functools.cache
def _policy() -> str:
    """What the browser may do with the page: run its own two scripts, apply its own style, and nothing else."""

    def hashed(name: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(_asset(name).encode()).digest()).decode()}'"

    scripts = " ".join(hashed(name) for name in ("theme.js", "page.js"))
    return f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def _embedded(content: object) -> str:
    """JSON that can stand in a script element: no letter of it means something to HTML or ends a line of JavaScript."""
    text = json.dumps(content, separators=(",", ":"))  # only ASCII: all others as \\u2028
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("\x7f", "\\u007f")


# What was not checked


def _unchecked(report: Report) -> Iterator[tuple[str, list[str]]]:
    """What nobody knows about the exported model, in words; each with its list."""
    if not report.verified:
        yield "Nothing was compared with eager", []
        return
    if report.partly:
        yield f"The check is not complete: {report.partly}", []
    ways = [f"{shown_path(one.where.file)}:{one.where.line} `{one.text}`: {name}" for one in report.decisions
            for name in one.unreached]  # fmt: skip
    if ways:
        yield "Ways that no compared input took", ways
    if report.undecided:
        yield "Inputs on which rounding alone may explain the difference: not decided", list(report.undecided)
    if report.endless:
        yield f"{report.endless} inputs on which a loop of eager's made too many rounds were not run", []
    if report.assumptions:
        yield "Taken for granted", list(report.assumptions)
    if not_run := _not_run(report.calls):
        yield "Operators that were not run by themselves", not_run
    if report.calls and report.calls.by_design:
        yield "Differ from eager on NaN or infinity, by design", list(report.calls.by_design)
    if report.left_out:
        yield "Results that are no tensors, and are left out", [f"{k} = {v}" for k, v in report.left_out.items()]
    yield "All other inputs: the check is evidence, not a proof for every input", []


def _not_run(calls: CallsSummary | None) -> list[str]:
    return [] if calls is None else [f"{name}: {reason}" for name, reason in calls.not_run.items()]


# The user's source


def _sources(report: Report) -> dict[str, _SourceFile]:
    """By file, the user's own lines that something in the report comes from. A library's are never shown."""
    lines: dict[str, set[int]] = {}
    for where in _places(report):
        if where.readable and not where.is_library:
            lines.setdefault(where.file, set()).add(where.line)
    found = {}
    for file, used in lines.items():
        texts = linecache.getlines(file)
        if texts:
            kept = _kept(len(texts), used)
            shown = tuple((number, texts[number - 1].rstrip("\r\n").expandtabs(4)) for number in kept)
            found[file] = _SourceFile(shown_path(file), shown)
    return found


def _kept(count: int, used: set[int]) -> list[int]:
    if count <= _WHOLE:
        return list(range(1, count + 1))
    near = {line + step for line in used for step in range(-_AROUND, _AROUND + 1)}
    return sorted(line for line in near if 1 <= line <= count)


def _places(report: Report) -> Iterator[Where]:
    """Of an exported model the lines of its nodes: they have none where the user wants no source in what is written."""
    if report.graph is not None:
        yield from (node.where for node in _nodes(report.graph) if node.where is not None)
        return
    for one in report.diagnostics:
        yield from [one.where] if one.where else []
        yield from (label.where for label in one.also)


def _nodes(graph: GraphSummary) -> Iterator[NodeSummary]:
    for node in graph.nodes:
        yield node
        for body in node.bodies:
            yield from _nodes(body)


def _anchor(where: Where | None, places: dict[str, int]) -> str:
    """Where the page shows a line; '' where it does not."""
    return f"L{places[where.file]}-{where.line}" if where is not None and where.file in places else ""


# The graph, for the script


def _data(report: Report, places: dict[str, int], sources: dict[str, _SourceFile]) -> dict[str, Any]:
    return {
        "files": [visible(source.name) for source in sources.values()],
        "graph": None if report.graph is None else _graph_data(report.graph, places),
    }


def _graph_data(graph: GraphSummary, places: dict[str, int]) -> dict[str, Any]:
    return {
        "name": visible(graph.name),
        "inputs": [visible(name) for name in graph.inputs],
        "outputs": [visible(name) for name in graph.outputs],
        "types": {visible(name): visible(text) for name, text in graph.types.items()},
        "nodes": [_node_data(node, places) for node in graph.nodes],
    }


def _node_data(node: NodeSummary, places: dict[str, int]) -> dict[str, Any]:
    """Short keys, and only what there is: a graph has thousands of nodes."""
    where = node.where
    said = {
        "op": visible(node.op),
        "name": visible(node.name),
        "in": [visible(name) for name in node.inputs],
        "out": [visible(name) for name in node.outputs],
        "mod": visible(node.module),
        "at": [places[where.file], where.line] if where is not None and where.file in places else None,
        "far": visible(f"{shown_path(where.file)}:{where.line}") if where is not None else "",
        "aten": visible(node.aten),
        "held": visible(node.constant),
        "bodies": [_graph_data(body, places) for body in node.bodies],
    }
    if said["at"]:
        del said["far"]
    return {key: value for key, value in said.items() if value}

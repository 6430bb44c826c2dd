"""The page without a browser: what stands in it, and what can never stand in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import unescape
from pathlib import Path

import pytest

from trueport.diagnostics.rules.tp203_state_written import StateWritten
from trueport.report import CheckedInput, DecisionSummary, GraphSummary, NodeSummary, Report, Verdict, Way
from trueport.report.html import report_html
from trueport.report.plots import WIDTH, differences, sizes_tried
from trueport.source import Place, Where

MODEL = "import torch\n\n\ndef forward(x):\n    if x.sum() > 0:\n        x = x + 1\n    return x @ x  # </script>\n"


def small_report(file: Path) -> Report:
    """A graph with a module, an If with two arms, a constant, and lines of the user's and of a library's."""

    def at(line: int) -> Where:
        return Where(str(file), line)

    arm = GraphSummary(
        "then_branch", (), ("y",), (NodeSummary("Add", "add", ("x", "one"), ("y",), "", at(6), "aten.add.Tensor"),)
    )
    other = GraphSummary("else_branch", (), ("z",), (NodeSummary("Identity", "same", ("x",), ("z",), "", at(5)),))
    nodes = (
        NodeSummary("Constant", "one", (), ("one",), "", at(6), constant="1"),
        NodeSummary("ReduceSum", "sum_before_if", ("x",), ("s",), "norm", at(5), "aten.sum.default"),
        NodeSummary("Greater", "greater", ("s", "one"), ("c",), "norm", at(5)),
        NodeSummary("If", "if", ("c",), ("r",), "", at(5), bodies=(arm, other)),
        NodeSummary("MatMul", "matmul", ("r", "r"), ("out",), "layers.0", at(7), "aten.mm.default"),
        NodeSummary("Relu", "relu", ("w",), ("unused",), "", Where("/usr/lib/site-packages/lib.py", 3)),
    )
    return Report(
        model="Net",
        verified=True,
        nodes=8,
        checks=tuple(
            CheckedInput({"N": n}, "normal", Verdict.EQUAL, n * 1e-7, 1e-5, {"out": (n * 1e-7, 1e-5)})
            for n in (0, 1, 5, 65)
        ),
        decisions=(DecisionSummary(at(5), "if", "x.sum() > 0", (Way("holds", 4), Way("fails", 0))),),
        seconds={"capture": 0.25, "verify": 1.5},
        graph=GraphSummary("main", ("x",), ("out",), nodes, {"x": "float32[N, N]", "w": "float32[3]"}),
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def test_what_was_checked_and_what_was_not_stand_side_by_side(file: Path) -> None:
    page = report_html(small_report(file))
    assert "Equal to eager on 4 of 4 inputs" in page
    assert re.search(r"Ways that no compared input took.*model\.py:5 `x\.sum\(\) &gt; 0`: fails", page, re.DOTALL)
    assert "not a proof for every input" in page
    unchecked = report_html(Report(model="Net"))
    assert "never compared with eager" in unchecked
    assert "Nothing was compared with eager" in unchecked


def test_lines_are_the_users_own_and_findings_lead_to_them(file: Path) -> None:
    page = report_html(small_report(file))
    assert '<li id="L0-6">' in page
    assert "# &lt;/script&gt;" in page
    assert 'href="#L0-5"' in page
    assert page.count('<ol class="source') == 1  # the library's file is named, and not shown


def test_a_line_that_may_not_be_read_is_not_shown(file: Path) -> None:
    node = NodeSummary("Add", "add", (), ("y",), where=Where(str(file), 6, readable=False))
    page = report_html(Report(model="Net", graph=GraphSummary("main", (), ("y",), (node,))))
    assert "x = x + 1" not in page


def test_without_lines_on_the_nodes_no_source_is_shown(file: Path) -> None:
    """`--no-source`: what is written goes to others."""
    node = NodeSummary("Add", "add", (), ("y",), "layer")
    decided = small_report(file).decisions
    page = report_html(
        Report(model="Net", verified=True, decisions=decided, graph=GraphSummary("m", (), ("y",), (node,)))
    )
    assert "x = x + 1" not in page


def test_a_refused_model_is_shown_with_its_lines(file: Path) -> None:
    found = StateWritten(message="`calls` is written", place=Place((Where(str(file), 6),)))
    page = report_html(Report(model="Net", diagnostics=(found,)))
    assert 'href="#L0-6"' in page
    assert "def forward(x):" in page
    assert '<li id="L0-6" class="found">' in page


def test_of_a_long_file_only_what_is_near_is_shown(tmp_path: Path) -> None:
    long = tmp_path / "long.py"
    long.write_text("".join(f"line_{n}\n" for n in range(1, 5001)))
    node = NodeSummary("Add", "add", (), ("y",), where=Where(str(long), 2500))
    page = report_html(Report(model="Net", graph=GraphSummary("main", (), ("y",), (node,))))
    assert "line_2500<" in page
    assert "line_2485<" in page
    assert "line_2484<" not in page
    assert "line_1<" not in page


def data_of(page: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    loaded: dict[str, object] = json.loads(found[1])
    return loaded


def test_the_data_cannot_leave_their_element(file: Path) -> None:
    name = "</script><!--\u2028&amp;"
    graph = GraphSummary("main", (name,), (name,), (NodeSummary(name, name, (name,), (name,)),))
    page = report_html(Report(model="Net", graph=graph))
    assert page.count("</script>") == 3
    held = data_of(page)["graph"]
    assert isinstance(held, dict)
    assert held["inputs"] == ["</script><!--\\u2028&amp;"]  # as it is shown: what is not printable, in letters


def test_the_browser_may_run_the_pages_own_scripts_only(file: Path) -> None:
    page = report_html(small_report(file))
    policy = unescape(re.findall(r'Content-Security-Policy" content="([^"]*)"', page)[0])
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 2
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
        for danger in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "fetch(", "http"):
            assert danger not in script


def test_the_json_has_no_graph_and_the_differences_of_each_output(file: Path) -> None:
    content = json.loads(small_report(file).to_json())
    assert "graph" not in content
    assert content["checks"][2]["by_output"] == {"out": [5e-7, 1e-5]}


def test_plots_keep_to_the_width_of_a_phone(file: Path) -> None:
    checks = small_report(file).checks
    wrong = CheckedInput({"N": 10**6, "M": 0}, "x", Verdict.DIFFERENT, 9.0, 1.0, {"out": (9.0, 1.0), "n": (0.0, 0.0)})
    for plot in (sizes_tried((*checks, wrong)), differences((*checks, wrong))):
        assert plot is not None
        assert [row.name for row in plot.rows] in (["N", "M"], ["out", "n"])
        dots = [dot for row in plot.rows for dot in row.dots]
        assert all(0 < dot.x <= WIDTH - 4 for dot in dots)
        assert sum(not dot.good for dot in dots) == 2
        assert all(0 < x < WIDTH for x, _ in plot.ticks)
    assert sizes_tried(()) is None
    assert differences(()) is None


def test_a_notebook_shows_the_verdict_and_the_findings() -> None:
    import trueport

    shown = Report(model="Net", verified=True)._repr_html_()
    assert "<b>faithful</b> Net" in shown
    assert "<script" not in shown
    assert hasattr(trueport.Program, "_repr_html_")

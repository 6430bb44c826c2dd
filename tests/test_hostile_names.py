"""Names that were chosen to do harm: nothing that a file, a model or a folder is called is run, obeyed or followed."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
import typing
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import onnx
import pytest
import torch
from click.testing import CliRunner
from onnx import helper

import trueport
from tests.verify.onnx_models import FLOAT, port, scaled, write
from trueport.cli.main import main
from trueport.diagnostics.base import Label
from trueport.diagnostics.rules.tp805_wrong_values import WrongValues
from trueport.load.targets import load_target
from trueport.report import (
    CheckedInput,
    DecisionSummary,
    GraphSummary,
    NodeSummary,
    Report,
    SizeSummary,
    TensorSummary,
    Verdict,
    Way,
)
from trueport.report.formats import FORMATS
from trueport.report.html import report_fragment, report_html
from trueport.source import Place, SourceRoots, Where
from trueport.verify.faults.evidence import SCRIPT, ComparedCall, Evidence
from trueport.verify.runtime.tensors import from_torch

HARM = (
    "\x1b[2J\x1b]52;c;cm0=\x07\x9b1m\r\nfaithful Net\n::error::x\n##[error]\u202e\u2066\x85\u2028\udc80"
    "[red]{0}%s%n<script>alert(1)</script>&\"']]>"
)
"""Erases the screen, writes the clipboard, adds lines, turns the text around, and is markup of every kind."""


def spoken(kind: type, **given: object) -> typing.Any:
    """An instance in which every text, wherever it stands, is HARM."""
    hints = typing.get_type_hints(kind)
    texts = {one.name: HARM for one in dataclasses.fields(kind) if one.init and hints[one.name] in (str, str | None)}
    lists = {one.name: (HARM,) for one in dataclasses.fields(kind) if hints[one.name] == tuple[str, ...]}
    tables = {one.name: {HARM: HARM} for one in dataclasses.fields(kind) if hints[one.name] == Mapping[str, str]}
    return kind(**{**texts, **lists, **tables, **given})


def hostile_report(ok: bool) -> Report:
    where = Where(HARM, 3, HARM)
    found = spoken(
        WrongValues, place=Place((where, Where(HARM, 4, HARM)), HARM), also=(Label(where, HARM),), severity=None
    )
    return spoken(
        Report,
        diagnostics=() if ok else (found,),
        inputs=(spoken(TensorSummary),),
        outputs=(spoken(TensorSummary),),
        free_sizes=(spoken(SizeSummary),),
        checks=(
            CheckedInput({HARM: 2}, HARM, Verdict.EQUAL if ok else Verdict.DIFFERENT, 1.0, 2.0, {HARM: (1.0, 2.0)}),
        ),
        graph=hostile_graph(),
        decisions=(DecisionSummary(where, HARM, HARM, (Way(HARM, 1),)),),
        seconds={HARM: 1.0},
        verified=True,
    )


def hostile_graph() -> GraphSummary:
    inner = spoken(GraphSummary, nodes=(), inputs=(f"{HARM}2",))
    node = spoken(NodeSummary, where=Where(HARM, 3, HARM, readable=False), bodies=(inner,))
    return spoken(GraphSummary, nodes=(node,))


RENDERINGS = {**FORMATS, "html": report_html, "notebook": report_fragment}


@pytest.mark.parametrize("ok", [True, False], ids=["faithful", "different"])
@pytest.mark.parametrize("name", RENDERINGS)
def test_no_format_hands_on_what_is_not_printable(name: str, ok: bool) -> None:
    shown = RENDERINGS[name](hostile_report(ok))
    assert [letter for letter in shown if not letter.isprintable() and letter != "\n"] == []
    assert "\\x1b[2J" in shown.replace("\\u001b", "\\x1b")  # it is still told, and JSON has one escape of its own
    shown.encode()


def test_no_name_makes_a_line_that_looks_like_ours() -> None:
    for name in ("full", "concise", "github"):
        lines = FORMATS[name](hostile_report(ok=False)).splitlines()
        assert not any(line.startswith(("faithful", "##[")) for line in lines), name
        commands = [line for line in lines if line.lstrip().startswith("::")]
        assert len(commands) == (1 if name == "github" else 0) or name == "full"
        assert not any("##[" in line for line in lines if name == "github" and not line.startswith("::"))


def test_names_are_no_markup() -> None:
    def tags_of(page: str) -> tuple[list[str], list[str | None]]:
        tags, ids = [], []

        class Tags(HTMLParser):
            def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
                tags.append(tag)
                ids.append(dict(attrs).get("id"))

        Tags().feed(page)
        return tags, ids

    tags, ids = tags_of(report_html(hostile_report(ok=False)))
    assert tags.count("script") == 3  # the page's own: theme, data, picture
    assert {"table", "pre", "svg"} <= set(tags)
    assert ids.count("data") == 1
    assert "script" not in tags_of(report_fragment(hostile_report(ok=False)))[0]
    shown, _, whole = FORMATS["markdown"](hostile_report(ok=False)).partition("<details>")
    assert not re.search(r"(?<!\\)<", shown)
    assert whole.count("\n```text\n") == 1
    ElementTree.fromstring(FORMATS["junit"](hostile_report(ok=False)))
    found = json.loads(FORMATS["json"](hostile_report(ok=False)))["diagnostics"][0]
    assert found["message"] == HARM  # whole, for programs


def test_a_finding_that_is_raised_says_nothing_else_either() -> None:
    said = str(trueport.ExportError([WrongValues(message=HARM, place=Place((Where(HARM, 1),)))]))
    assert all(letter.isprintable() or letter == "\n" for letter in said)


def test_a_name_of_70_000_letters_does_not_fill_the_screen() -> None:
    long = Report(model="Net", verified=True, inputs=(TensorSummary("n" * 70_000, "float32", ("2",)),))
    assert max(map(len, long.text().splitlines())) < 1000


NAMES = [
    'x"""\nopen("pwned", "w")\n"""',
    "'); open('pwned', 'w'); ('",
    r"C:\Users\N{DEL}\x",
    "../../outside",
    "/absolute/path",
    "{0}{model!r}%s",
    "\x1b[2J\n",
    "file",
    "n" * 70_000,
    "ü[0]",
]


@pytest.mark.parametrize("name", NAMES, ids=[f"name {i}" for i in range(len(NAMES))])
def test_the_script_of_a_counterexample_holds_names_as_text_alone(tmp_path: Path, name: str) -> None:
    node = helper.make_node("Mul", [name, "factor"], [f"{name}out"])
    folder = tmp_path / name.replace("/", "_")[:100].replace("\0", "")
    folder.mkdir()
    path = write(folder / "m.onnx", [node], [port(name)], [port(f"{name}out")], {"factor": (FLOAT, [], [3.0])})
    x = torch.tensor([[1.0, 2.0, 3.0]])
    for evidence in (Evidence(tmp_path / "shown"), Evidence(tmp_path / "with model", with_model=True)):
        call = ComparedCall({name: from_torch(x)}, [2 * x])
        told = evidence.kept(path, call, [f"{name}out"])
        assert told.folder == evidence.folder, told.words
        ran = subprocess.run(
            [sys.executable, evidence.folder / SCRIPT], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        assert "ONNX  array([[3., 6., 9.]]" in ran.stdout
        assert all(letter.isprintable() or letter == "\n" for letter in ran.stdout)
        assert len(ran.stdout) < 1000
        evidence.kept_calls(path, [call, call], [f"{name}out"])
        again = subprocess.run([sys.executable, evidence.folder / SCRIPT], capture_output=True, text=True, check=True)
        assert again.stdout.count("ONNX  array([[3., 6., 9.]]") == 2
    assert {path.name for path in tmp_path.iterdir()} == {folder.name, "shown", "with model"}


def test_lists_are_shown_by_the_script_too(tmp_path: Path) -> None:
    nodes = [helper.make_node("SequenceConstruct", ["x", "x"], ["rows\n'"])]
    rows = helper.make_tensor_sequence_value_info("rows\n'", FLOAT, None)
    path = write(tmp_path / "m.onnx", nodes, [port("x")], [rows], {})
    x = torch.ones(1, 3)
    Evidence(tmp_path / "shown").kept(path, ComparedCall({"x": from_torch(x)}, [[x, 2 * x]]), ["rows\n'"])
    ran = subprocess.run(
        [sys.executable, tmp_path / "shown" / SCRIPT], capture_output=True, text=True, check=True
    ).stdout
    assert ran.startswith("rows\\n'\n  eager [array([[1.")


MODEL = """
from torch import nn
class Net(nn.Module):
    def forward(self, x):
        return x * 2
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "hostile_net.py").write_text(MODEL)
    (tmp_path / "secret.py").write_text("a secret of the machine\n")
    (tmp_path / "secret.txt").write_text("a secret of the machine\n")
    (folder / "secret.env").write_text("a secret of the machine\n")
    (folder / "link.py").symlink_to(tmp_path / "secret.txt")
    monkeypatch.chdir(folder)
    yield folder
    sys.modules.pop("hostile_net", None)


def refusing(path: Path, source: str = "", trace: str = "") -> Path:
    """A model that the runtime refuses at a node that says where it comes from."""
    node = helper.make_node("Reshape", ["x", "shape"], ["y"], name="node_reshape\x1b[31m")
    for key, note in (("trueport.source", source), ("pkg.torch.onnx.stack_trace", trace)):
        if note:
            node.metadata_props.add(key=key, value=note)
    return write(path, [node], [port("x")], [port("y", FLOAT, None)], {"shape": (7, [2], [7, 5])})


@pytest.mark.parametrize(
    "note",
    [
        *("{root}/secret.py:1", "{root}/secret.txt:1", "../secret.py:1", "project/../../secret.py:1", "secret.env:1"),
        *(
            "link.py:1",
            "x/../../secret.py:1",
            "/etc/passwd:1",
            "site-packages/../../../secret.py:1",
            "./../secret.py:1",
        ),
    ],
)
def test_a_note_in_the_file_leads_to_no_line_outside_the_project(project: Path, note: str) -> None:
    note = note.format(root=project.parent)
    file, _, line = note.rpartition(":")
    net = load_target("hostile_net.py:Net").model
    for path in (
        refusing(project / "a.onnx", note),
        refusing(project / "b.onnx", trace=f'File "{file}", line {line}, in forward\n'),
    ):
        report = trueport.verify(path, net, (torch.ones(2, 3),))
        assert [found.code for found in report.errors] == ["TP802"]
        for shown in (render(report) for render in RENDERINGS.values()):
            assert "a secret" not in shown
            assert "root:" not in shown
            assert "\x1b" not in shown


def test_a_note_about_the_model_itself_shows_its_line(project: Path) -> None:
    refusing(project / "a.onnx", "hostile_net.py:5")
    done = CliRunner().invoke(main, ["verify", "a.onnx", "hostile_net.py:Net", "-i", "x:2x3"])
    assert "5 |         return x * 2" in done.output


def test_names_of_the_file_reach_no_terminal(project: Path) -> None:
    """Inputs, outputs, sizes, operators: through the whole command, as text for a terminal."""
    node = helper.make_node("Mul", [HARM[:-40].replace("\udc80", ""), "f"], ["[red]{0}\x1b[2Jy"], name="n\x9b")
    first = helper.make_tensor_value_info(node.input[0], FLOAT, ["[bold]\x1b[31m", 3])
    write(project / "a.onnx", [node], [first], [port(node.output[0])], {"f": (FLOAT, [], [3.0])})
    done = CliRunner().invoke(main, ["verify", "a.onnx", "hostile_net.py:Net", "-i", "x:2x3"], color=True)
    assert done.exit_code == 1, done.output
    assert "TP805" in done.output
    assert [letter for letter in done.output if not letter.isprintable() and letter != "\n"] == []


class TestRoots:
    def test_what_is_noted_says_nothing_about_the_machine(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "work" / "pkg").mkdir(parents=True)
        (tmp_path / "work" / "pyproject.toml").touch()
        roots = SourceRoots.of([])
        assert roots.note(str(tmp_path / "work" / "pkg" / "net.py")) == "pkg/net.py"
        monkeypatch.chdir(tmp_path)
        assert roots.note(str(tmp_path / "other" / "net.py")) == "other/net.py"
        monkeypatch.chdir("/")
        assert not SourceRoots.of([]).note(torch.__file__).startswith("/")
        assert roots.note(torch.__file__) == "site-packages/torch/__init__.py"
        assert roots.note(json.__file__) == "stdlib/json/__init__.py"
        assert roots.note("<stdin>") == "<stdin>"
        chosen = SourceRoots.of([], str(tmp_path))
        assert chosen.note(str(tmp_path / "work" / "pkg" / "net.py")) == "work/pkg/net.py"

    def test_what_was_noted_is_found_again(self, tmp_path: Path) -> None:
        (tmp_path / "pyproject.toml").touch()
        file = tmp_path / "pkg" / "net.py"
        file.parent.mkdir()
        file.touch()
        assert SourceRoots.of([str(file)]).find("pkg/net.py") == str(file)
        assert SourceRoots.of([str(file)]).find(str(file)) == str(file)
        assert SourceRoots.of([str(file)]).find("site-packages/torch/__init__.py") == torch.__file__
        assert SourceRoots.of([]).find("pkg/net.py") is None
        for note in ("../pkg/net.py", "pkg/\0.py", "", "/", "pkg", "/etc/passwd", str(Path(__file__))):
            assert SourceRoots.of([str(file)]).find(note) is None, note


def test_a_file_that_says_nothing_of_lines_is_read_all_the_same(tmp_path: Path) -> None:
    path = scaled(tmp_path / "m.onnx", 3.0)
    onnx.checker.check_model(str(path))
    report = trueport.verify(path, torch.nn.Identity(), (torch.ones(2, 3),))
    assert report.errors[0].code == "TP805"

"""What `export` and `check` ask of the rooms behind them, with stand-ins for those rooms.

The rooms have tests of their own; here it matters that every option arrives where it should, and what is printed where.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from trueport.cli.main import main
from trueport.cli.outcome import Exit
from trueport.diagnostics.rules.tp101_branch_on_tensor import BranchOnTensor
from trueport.diagnostics.rules.tp303_sizes_related import SizesRelated
from trueport.diagnostics.rules.tp809_not_verified import NotVerified
from trueport.diagnostics.rules.tp901_our_fault import OurFault
from trueport.errors import ExportError
from trueport.report import Report


@dataclass
class House:
    """Stand-ins for load and api, which note what they were asked."""

    model: object = field(default_factory=lambda: SimpleNamespace(name="the model"))
    example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None
    report: Report = field(default_factory=lambda: Report(model="Net", verified=True))
    refuses: Exception | None = None
    asked: dict[str, Any] = field(default_factory=dict)

    def load_target(self, text: str) -> object:
        print("a model that talks while it is being imported")
        self.asked["target"] = text
        return SimpleNamespace(
            model=self.model, given=self.model, with_weights=self.model, example_inputs=self.example_inputs
        )

    def load_weights(self, model: object, path: str) -> None:
        self.asked["weights"] = (model, path)

    def parse_inputs(self, specs: tuple[str, ...], dims: dict[str, Any], model: object) -> object:
        self.asked["specs"], self.asked["dims"] = list(specs), dims
        return SimpleNamespace(args=("x",), kwargs={"k": 1}, dynamic_shapes={"x": {0: "B"}}, value_ranges={"x": (0, 9)})

    def export(self, model: object, args: tuple[Any, ...], f: str, **options: Any) -> object:
        self.asked["export"] = (model, args, f, options)
        if self.refuses:
            raise self.refuses
        return SimpleNamespace(report=self.report)

    def check(self, model: object, args: tuple[Any, ...], **options: Any) -> Report:
        self.asked["check"] = (model, args, options)
        return self.report

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, arguments)


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> House:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where bundles go
    for name in ("m.py", "w.pt"):  # that a file is missing is found before any room is asked
        (tmp_path / name).touch()
    rooms = House()
    for name, functions in {
        "trueport.load.targets": ("load_target", "load_weights"),
        "trueport.load.specs": ("parse_inputs",),
        "trueport.api": ("export", "check"),
    }.items():
        module = ModuleType(name)
        for function in functions:
            setattr(module, function, getattr(rooms, function))
        monkeypatch.setitem(sys.modules, name, module)
    return rooms


def test_export_hands_over_every_option(house: House) -> None:
    done = house.run(
        "export", "m.py:Net", "-i", "x:Bx3", "-i", "n=@n.npy", "--dim", "B=1..8", "--weights", "w.pt", "--opset", "21",
        "--constants", "axis, mode", "--state", "frozen", "--no-verify", "--external-data", "--overwrite",
        "--thorough", "--nonfinite", "--seed", "7", "--atol", "y=1e-2",
        "-o", "a.onnx", "--random", "onnx", "--target", "onnxruntime==1.20", "--no-source", "--source-root", "src",
    )  # fmt: skip
    assert (done.exit_code, done.exception) == (Exit.FAITHFUL, None)
    assert house.asked["target"] == "m.py:Net"
    assert (house.asked["specs"], house.asked["dims"]) == (["x:Bx3", "n=@n.npy"], {"B": (1, 8)})
    assert house.asked["weights"] == (house.model, "w.pt")
    model, args, f, options = house.asked["export"]
    assert (model, args, f) == (house.model, ("x",), "a.onnx")
    assert options == {
        "kwargs": {"k": 1},
        "dynamic_shapes": {"x": {0: "B"}},
        "value_ranges": {"x": (0, 9)},
        "opset_version": 21,
        "target": "onnxruntime==1.20",
        "constants": ("axis", "mode"),
        "state": "frozen",
        "random": "onnx",
        "verify": False,
        "external_data": True,
        "overwrite": True,
        "proof": False,
        "thorough": True,
        "nonfinite": True,
        "counterexample": "a.onnx.counterexample",
        "seed": 7,
        "rtol": None,
        "atol": {"y": 0.01},
        "source": False,
        "source_root": "src",
    }


def test_what_is_not_asked_for_is_left_to_the_api(house: House) -> None:
    house.run("export", "m.py:Net", "-i", "x:Bx3", "-o", "a.onnx")
    options = house.asked["export"][3]
    assert options["verify"] is True
    assert options["overwrite"] is False
    assert options["constants"] == ()
    assert (options["opset_version"], options["state"], options["external_data"]) == (None, None, None)


def test_without_specs_the_example_inputs_of_the_file_are_used(house: House) -> None:
    house.example_inputs = (("from the file",), {"flag": True})
    house.run("check", "m.py:Net")
    assert "specs" not in house.asked
    assert house.asked["check"][1] == ("from the file",)
    assert house.asked["check"][2]["kwargs"] == {"flag": True}


def test_ranges_have_nothing_to_name_in_example_inputs(house: House) -> None:
    house.example_inputs = ((), {})
    done = house.run("check", "m.py:Net", "--dim", "B=1..8")
    assert done.exit_code == Exit.USAGE
    assert "example_inputs()" in done.stderr


def test_stdout_is_for_the_result_alone(house: House) -> None:
    done = house.run("export", "m.py:Net", "-i", "x:3", "-o", "a.onnx")
    assert done.stdout == house.report.text() + "\n"
    assert "talks while" in done.stderr


def test_a_refused_export_shows_its_findings_and_saves_the_report(house: House, tmp_path: Path) -> None:
    house.refuses = ExportError([BranchOnTensor(message="line 3 branches on a tensor")])
    done = house.run("export", "m.py:Net", "-i", "x:3", "-o", "a.onnx", "--report", "r.json")
    assert done.exit_code == Exit.FINDINGS
    assert done.stdout.startswith("refused m.py:Net: 1 error\n\nerror[TP101]: line 3 branches on a tensor")
    assert '"code": "TP101"' in (tmp_path / "r.json").read_text()


def test_check_tells_findings_by_its_exit_code(house: House) -> None:
    assert house.run("check", "m.py:Net", "-i", "x:3").exit_code == Exit.FAITHFUL
    house.report = Report(model="Net", diagnostics=(BranchOnTensor(message="a branch"),))
    done = house.run("check", "m.py:Net", "-i", "x:3")
    assert done.exit_code == Exit.FINDINGS
    assert done.stdout.startswith("refused Net: 1 error")


def test_a_finding_that_is_our_fault_is_not_taken_for_one_of_the_model(house: House) -> None:
    ours = OurFault(message="the trace stopped")
    house.report = Report(model="Net", diagnostics=(BranchOnTensor(message="a branch"), ours))
    assert house.run("check", "m.py:Net", "-i", "x:3").exit_code == Exit.OUR_FAULT
    house.refuses = ExportError([ours])
    assert house.run("export", "m.py:Net", "-i", "x:3", "-o", "a.onnx").exit_code == Exit.OUR_FAULT


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("full", "refused Net: 1 error"),
        ("concise", "error[TP101] a branch\n"),
        ("json", "{"),
        ("sarif", '{\n  "$schema"'),
        ("github", "::error title=TP101"),
        ("junit", "<?xml"),
        ("markdown", "**refused Net: 1 error**"),
    ],
)
def test_each_format_is_all_that_stands_on_stdout(house: House, name: str, begins: str) -> None:
    house.report = Report(model="Net", diagnostics=(BranchOnTensor(message="a branch"),))
    done = house.run("check", "m.py:Net", "-i", "x:3", "--output-format", name)
    assert done.exit_code == Exit.FINDINGS
    assert done.stdout.startswith(begins)


def test_a_refused_export_has_the_same_formats(house: House) -> None:
    house.refuses = ExportError([BranchOnTensor(message="a branch")])
    done = house.run("export", "m.py:Net", "-i", "x:3", "-o", "a.onnx", "--output-format", "concise")
    assert done.exit_code == Exit.FINDINGS
    assert done.stdout == "error[TP101] a branch\nrefused m.py:Net: 1 error\n"


class TestSelectAndIgnore:
    """Warnings and notes can be left out; what stops an export cannot."""

    @pytest.fixture(autouse=True)
    def findings(self, house: House) -> None:
        found = (BranchOnTensor(message="a branch"), NotVerified(message="hardly"), SizesRelated(message="m = n"))
        house.report = Report(model="Net", diagnostics=found)

    def shown(self, house: House, *arguments: str) -> list[str]:
        done = house.run("check", "m.py:Net", "-i", "x:3", "--output-format", "concise", *arguments)
        return [line.split("[")[1][:5] for line in done.stdout.splitlines()[:-1]]

    def test_ignored_notes_are_left_out(self, house: House) -> None:
        assert self.shown(house, "--ignore", "TP303") == ["TP101", "TP809"]
        assert self.shown(house, "--ignore", "tp3,TP809") == ["TP101"]

    def test_selected_ones_are_the_only_ones(self, house: House) -> None:
        assert self.shown(house, "--select", "TP8") == ["TP101", "TP809"]

    def test_an_error_is_never_ignored_silently(self, house: House) -> None:
        done = house.run("check", "m.py:Net", "-i", "x:3", "--ignore", "TP1")
        assert done.exit_code == Exit.FINDINGS
        assert "error[TP101]" in done.stdout
        assert "--ignore TP101: it is an error here" in done.stderr

    def test_a_code_that_does_not_exist_is_told(self, house: House) -> None:
        assert house.run("check", "m.py:Net", "-i", "x:3", "--ignore", "TP777").exit_code == Exit.USAGE


def bundle_of(done: Result) -> str:
    """The file that a command offers for the report of a bug, read and removed."""
    path = Path(done.stderr.rsplit(" is in ", 1)[1].strip())
    text = path.read_text()
    path.unlink()
    return text


def test_a_bug_comes_with_a_bundle_that_a_person_can_read(house: House) -> None:
    house.refuses = RuntimeError("no such symbol")
    text = bundle_of(house.run("export", "m.py:Net", "-i", "x:3", "-o", "a.onnx"))
    for part in ("== command", "== versions", "torch ", "== traceback", "RuntimeError: no such symbol"):
        assert part in text


def test_a_finding_that_is_our_fault_has_a_bundle_too(house: House) -> None:
    house.report = Report(model="Net", diagnostics=(OurFault(message="the trace stopped", trace="KeyError: s0"),))
    text = bundle_of(house.run("check", "m.py:Net", "-i", "x:3"))
    assert "error[TP901]: the trace stopped" in text
    assert "KeyError: s0" in text


def test_a_bug_behind_the_command_line_is_told_as_ours(house: House) -> None:
    house.refuses = RuntimeError("no such symbol")
    done = house.run("export", "m.py:Net", "-i", "x:3", "-o", "a.onnx")
    assert done.exit_code == Exit.OUR_FAULT
    assert "error[TP901]" in done.stderr
    assert done.stdout == ""

"""One ONNX file against the one that it was made of: simplified, in half precision, quantised, or broken on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper, numpy_helper

import trueport
from trueport.cli.main import main
from trueport.cli.outcome import Exit

WEIGHT = (np.arange(12, dtype="f").reshape(4, 3) - 5) / 7


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def file(name: str, *nodes: Any, inputs: Any = None, outputs: Any = None, **weights: Any) -> Path:
    inputs = inputs or [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 4])]
    outputs = outputs or [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 3])]
    held = [numpy_helper.from_array(np.asarray(value), key) for key, value in weights.items()]
    graph = helper.make_graph([helper.make_node(*node[:3], **node[3]) for node in nodes], "g", inputs, outputs, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, name)
    return Path(name)


def original() -> Path:
    return file("a.onnx", ("MatMul", ["x", "w"], ["h"], {}), ("Relu", ["h"], ["y"], {}), w=WEIGHT)


def verify(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify", *arguments, "-q"])


def test_a_file_that_computes_the_same_otherwise() -> None:
    original()
    file(
        "b.onnx", ("Gemm", ["x", "w"], ["g"], {"transB": 1}), ("Clip", ["g", "zero"], ["y"], {}),
        w=WEIGHT.T.copy(), zero=np.float32(0),
    )  # fmt: skip
    report = trueport.verify("b.onnx", "a.onnx")
    assert report.ok, report
    assert report.text().startswith("faithful a.onnx → b.onnx  equal to a.onnx on")
    assert {0, 1, 2} <= {check.sizes["rows"] for check in report.checks}


class TestABrokenFile:
    def test_names_the_first_node_that_differs(self) -> None:
        original()
        broken = WEIGHT.copy()
        broken[2, 1] += 0.5
        file("b.onnx", ("MatMul", ["x", "w"], ["h"], {}), ("Relu", ["h"], ["y"], {}), w=broken)
        shown = verify("a.onnx", "b.onnx")
        assert shown.exit_code == Exit.FINDINGS
        assert "unfaithful b.onnx is not a.onnx" in shown.stdout
        assert "error[TP805]: output `y` differs from a.onnx by" in shown.stdout
        assert "begins at the node MatMul that makes `h`" in shown.stdout
        assert "--budget" in shown.stdout
        assert "eager" not in shown.stdout
        assert Path("b.onnx.counterexample/show_difference.py").is_file()

    def test_also_where_no_value_has_the_name_of_another(self) -> None:
        original()
        file("b.onnx", ("MatMul", ["x", "w"], ["k"], {}), ("Abs", ["k"], ["y"], {}), w=WEIGHT)
        (found,) = trueport.verify("b.onnx", "a.onnx").errors
        assert any("begins at the node Abs that makes `y`" in fact for fact in found.seen)

    def test_a_size_that_a_tool_has_frozen_is_found(self) -> None:
        original()
        file(
            "b.onnx", ("MatMul", ["x", "w"], ["h"], {}), ("Relu", ["h"], ["r"], {}), ("Reshape", ["r", "s"], ["y"], {}),
            w=WEIGHT, s=np.array([2, 3]),
        )  # fmt: skip
        report = trueport.verify("b.onnx", "a.onnx")
        assert {found.code for found in report.errors} == {"TP802"}

    def test_one_that_cannot_be_loaded(self) -> None:
        original()
        Path("b.onnx").write_bytes(b"\x08\x0agarbage")
        shown = verify("a.onnx", "b.onnx")
        assert shown.exit_code == Exit.FINDINGS
        assert "error[TP801]: b.onnx:" in shown.stdout

    def test_a_reference_that_cannot_be_loaded(self) -> None:
        original()
        Path("b.onnx").write_bytes(b"\x08\x0agarbage")
        assert "error[TP801]: b.onnx:" in verify("b.onnx", "a.onnx").stdout


def test_half_precision_inside_is_judged_by_its_dtype() -> None:
    original()
    half: Any = {"to": TensorProto.FLOAT16}
    file(
        "b.onnx", ("Cast", ["x"], ["xh"], half), ("MatMul", ["xh", "w"], ["hh"], {}), ("Relu", ["hh"], ["yh"], {}),
        ("Cast", ["yh"], ["y"], {"to": TensorProto.FLOAT}), w=WEIGHT.astype(np.float16),
    )  # fmt: skip
    report = trueport.verify("b.onnx", "a.onnx", value_ranges={"x": (-2, 2)})
    assert report.ok, report
    assert report.tolerances["y"].startswith("0.01 of the value")


def test_half_precision_at_the_ends_is_compared_there_and_told() -> None:
    original()
    file(
        "b.onnx", ("MatMul", ["x", "w"], ["h"], {}), ("Relu", ["h"], ["y"], {}), w=WEIGHT.astype(np.float16),
        inputs=[helper.make_tensor_value_info("x", TensorProto.FLOAT16, ["rows", 4])],
        outputs=[helper.make_tensor_value_info("y", TensorProto.FLOAT16, ["rows", 3])],
    )  # fmt: skip
    report = trueport.verify("b.onnx", "a.onnx", value_ranges={"x": (-2, 2)})
    assert report.ok, report
    assert [found.message for found in report.notes] == [
        "`x` is float16, and float32 in a.onnx: both were compared in float16",
        "`y` is float16, and float32 in a.onnx: both were compared in float16",
    ]


class TestAQuantisedFile:
    @pytest.fixture(autouse=True)
    def files(self) -> None:
        original()
        scale = np.float32(0.01)
        whole = np.round(WEIGHT / scale).astype(np.int8)
        file(
            "b.onnx", ("DequantizeLinear", ["w", "scale"], ["d"], {}), ("MatMul", ["x", "d"], ["h"], {}),
            ("Relu", ["h"], ["y"], {}), w=whole, scale=scale,
        )  # fmt: skip

    def test_has_a_budget_that_is_printed(self) -> None:
        shown = verify("a.onnx", "b.onnx")
        assert shown.exit_code == Exit.FAITHFUL, shown.output
        assert shown.stdout.startswith("within its budget a.onnx → b.onnx  close to a.onnx on")
        assert "0.05 of the largest value on the example (the file is quantised): `y` ±" in shown.stdout
        assert "x: values of the example's range" in shown.stdout

    def test_a_smaller_budget_is_asked_for(self) -> None:
        shown = verify("a.onnx", "b.onnx", "--budget", "1e-5")
        assert shown.exit_code == Exit.FINDINGS
        assert "1e-05 of the largest value on the example (as asked for)" in shown.stdout


class TestInputs:
    def test_from_the_command_line_whatever_they_are_called(self) -> None:
        odd = helper.make_tensor_value_info("input.1", TensorProto.INT64, ["n"])
        table = np.arange(20, dtype="f").reshape(10, 2)
        node = ("Gather", ["table", "input.1"], ["y"], {})
        wide = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])]
        file("a.onnx", node, inputs=[odd], outputs=wide, table=table)
        file("b.onnx", node, inputs=[odd], outputs=wide, table=table)
        shown = verify("a.onnx", "b.onnx", "-i", "input.1:N:i64@0..9", "--dim", "N=1..8")
        assert shown.exit_code == Exit.FAITHFUL, shown.output
        assert "N = 1, 2" in shown.stdout

    def test_an_example_that_the_reference_refuses(self) -> None:
        ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])
        wide = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])]
        small = np.zeros((1, 2), "f")
        file("a.onnx", ("Gather", ["table", "ids"], ["y"], {}), inputs=[ids], outputs=wide, table=small)
        shown = verify("a.onnx", "a.onnx", "-i", "ids:N:i64@5..9")
        assert shown.exit_code == Exit.FINDINGS
        assert "a.onnx refuses the example" in shown.stdout
        assert "-i ids:BxS:i64@0..999" in shown.stdout

    def test_in_python(self) -> None:
        import torch

        original()
        report = trueport.verify("a.onnx", "a.onnx", (torch.rand(3, 4),), dynamic_shapes=({0: "r"},))
        assert report.ok
        assert [size.name for size in report.free_sizes] == ["r"]
        assert trueport.verify("a.onnx", "a.onnx", kwargs={"x": torch.rand(2, 4)}).ok
        with pytest.raises(trueport.UsageError, match="does not fit the file"):
            trueport.verify("a.onnx", "a.onnx", (torch.rand(3, 4), torch.rand(2)))

    @pytest.mark.parametrize(
        "arguments",
        [
            ["-i", "z:3"],
            ["-i", "x:3x4", "-i", "x:3x4"],
            ["--weights", "w.pt"],
            ["--budget", "-1"],
            ["--dim", "Q=1..2"],
        ],
    )
    def test_what_makes_no_sense_is_refused(self, arguments: list[str]) -> None:
        original()
        shown = verify("a.onnx", "a.onnx", *arguments)
        assert shown.exit_code == Exit.USAGE, shown.output
        assert "error[TP001]" in shown.stderr

    def test_no_such_file_and_a_budget_for_a_model(self) -> None:
        original()
        assert verify("a.onnx", "missing.onnx").exit_code == Exit.USAGE
        shown = verify("a.onnx", "torch.nn:ReLU", "--budget", "0.1")
        assert shown.exit_code == Exit.USAGE
        assert "--budget is for two ONNX files" in shown.stderr

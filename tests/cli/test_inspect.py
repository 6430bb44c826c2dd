"""`trueport inspect`: what is in a file of ours and of others, and that a hostile one gets nothing done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import onnx
import pytest
import torch
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import trueport
from tests.test_hostile_names import HARM
from trueport.cli.main import main

SCHEMA = Path(__file__).parents[2] / "docs" / "inspect.schema.json"
FLOAT = TensorProto.FLOAT


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.fc(x)
        if h.sum() > 0:  # branch
            for i in range(x.shape[0]):  # loop
                h = h + x[i]
        return torch.cat([h, h])


def line_of(mark: str) -> str:
    number = next(n for n, line in enumerate(Path(__file__).read_text().splitlines(), 1) if line.endswith(f"# {mark}"))
    return f"tests/cli/test_inspect.py:{number}"


def told(path: Path | str) -> dict[str, Any]:
    done = CliRunner().invoke(main, ["inspect", str(path), "--output-format", "json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(found, json.loads(SCHEMA.read_text()))
    return found


def shown(path: Path | str) -> str:
    done = CliRunner().invoke(main, ["inspect", str(path)])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("ours") / "net.onnx"
    model = nn.Sequential(Block()).eval()
    trueport.export(model, (torch.ones(3, 4),), path, dynamic_shapes=({0: "N"},), verify=False)
    return path


def test_a_file_of_ours(ours: Path) -> None:
    found = told(ours)
    assert found["producer"].startswith("trueport ")
    assert [(one["name"], one["type"], one["shape"]) for one in found["inputs"]] == [("input", "float32", ["N", 4])]
    assert [(one["text"], one["is_formula"], one["axes"]) for one in found["sizes"]] == [
        ("N", False, ["input.0"]),
        ("2*N", True, ["output.0"]),
    ]
    [branch] = found["control_flow"]
    assert (branch["operator"], branch["line"], branch["module"]) == ("If", line_of("branch"), "0")
    [loop] = [node for body in branch["bodies"] for node in body["control_flow"]]
    assert (loop["operator"], loop["line"]) == ("Loop", line_of("loop"))
    assert found["weights"][0] == {
        "name": "0.fc.weight", "type": "float32", "shape": [4, 4], "bytes": 64, "file": None
    }  # fmt: skip
    assert sum(one["count"] for one in found["operators"]) == found["nodes"]
    lines = {one["line"]: {each["name"] for each in one["operators"]} for one in found["lines"]}
    assert "If" in lines[line_of("branch")] and "Loop" in lines[line_of("loop")]
    assert found["passes"] == {} and "removed by passes" not in shown(ours)


def test_the_text_names_the_lines_and_the_sizes(ours: Path) -> None:
    text = shown(ours)
    assert f"If  {line_of('branch')}" in text and f"Loop  {line_of('loop')}" in text
    assert "  N  input.0" in text and "  2*N  output.0" in text


def test_it_needs_neither_torch_nor_a_runtime(ours: Path) -> None:
    program = (
        "import sys; from trueport.cli.main import main\n"
        f"try: main(['inspect', {str(ours)!r}])\n"
        "finally: heavy = {'torch', 'onnxruntime', 'onnx_ir'} & set(sys.modules); assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def model_of(nodes: list[onnx.NodeProto], weights: list[TensorProto] | None = None, **more: Any) -> onnx.ModelProto:
    ports = [helper.make_tensor_value_info(name, FLOAT, ["N", None]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], weights or [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], **more)


def test_a_file_of_torchs_exporter_has_lines_too(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    trace = (
        '  File "/home/a/net.py", line 7, in forward\n  File "/v/site-packages/torch/nn/modules/x.py", line 9, in f\n'
    )
    node.metadata_props.add(key="pkg.torch.onnx.stack_trace", value=trace)
    onnx.save(model_of([node]), tmp_path / "a.onnx")
    assert [one["line"] for one in told(tmp_path / "a.onnx")["lines"]] == ["/home/a/net.py:7"]


def test_what_passes_removed_is_told(tmp_path: Path) -> None:
    model = model_of([helper.make_node("Relu", ["x"], ["y"])])
    model.metadata_props.add(key="trueport.passes", value='{"dead-code": 3}')
    onnx.save(model, tmp_path / "a.onnx")
    assert told(tmp_path / "a.onnx")["passes"] == {"dead-code": 3}
    assert "removed by passes\n  3  dead-code" in shown(tmp_path / "a.onnx")


@pytest.mark.parametrize("noted", ["{", "[]", '{"a": "b"}', "[" * 100_000])
def test_notes_of_passes_that_are_none_are_left_out(tmp_path: Path, noted: str) -> None:
    model = model_of([helper.make_node("Relu", ["x"], ["y"])])
    model.metadata_props.add(key="trueport.passes", value=noted)
    onnx.save(model, tmp_path / "a.onnx")
    assert told(tmp_path / "a.onnx")["passes"] == {}


@pytest.mark.parametrize(
    ("location", "outside", "size"),
    [
        ("w.bin", False, 64),
        ("missing.bin", False, None),
        ("../secret", True, None),
        ("/etc/passwd", True, None),
        ("link", True, None),
        ("..\\secret", True, None),
        ("a\0b", True, None),
        ("", True, None),
    ],
)
def test_weights_beside_the_file_are_not_read(tmp_path: Path, location: str, outside: bool, size: int | None) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"12345")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "w.bin").write_bytes(bytes(64))
    weight = numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", "64")):
        weight.external_data.add(key=key, value=value)
    (folder / "a.onnx").write_bytes(
        model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [weight]).SerializeToString()
    )
    [file] = told(folder / "a.onnx")["data_files"]
    assert (file["path"], file["outside"], file["bytes"], file["referred"]) == (location, outside, size, 64)
    assert ("outside of the model's folder" in shown(folder / "a.onnx")) == outside


def test_names_that_were_chosen_to_do_harm_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    name = HARM.replace("\udc80", "")  # which protobuf refuses
    inner = helper.make_graph([helper.make_node("Relu", ["x"], [name], name=name)], name, [], [
        helper.make_tensor_value_info(name, FLOAT, [name])
    ])  # fmt: skip
    node = helper.make_node("If", ["c"], ["y"], name=name, domain=name, then_branch=inner, else_branch=inner)
    for key in ("trueport.source", "trueport.module", name):
        node.metadata_props.add(key=key, value=name)
    weight = numpy_helper.from_array(np.ones(3, np.float32), name)
    weight.data_type = 77
    model = model_of([node], [weight], producer_name=name)
    model.metadata_props.add(key=name, value=name)
    model.metadata_props.add(key="trueport.passes", value=json.dumps({name: 1}))
    model.functions.add(name=name, domain=name)
    (tmp_path / "a.onnx").write_bytes(model.SerializeToString())
    assert told(tmp_path / "a.onnx")["control_flow"][0]["line"] == name
    text = shown(tmp_path / "a.onnx")
    assert "\\x1b[2J" in text
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    assert not any(line.startswith(("faithful", "::error", "##[error")) for line in text.splitlines())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no model"),
        (b"garbage" * 9, "is no ONNX file"),
        (b"\x08\x07", "holds no model"),
        (None, "is no file"),
    ],
    ids=["empty", "garbage", "no graph", "a folder"],
)
def test_what_is_no_model_is_told_plainly(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path if content is None else tmp_path / "a.onnx"
    if content is not None:
        path.write_bytes(content)
    done = CliRunner().invoke(main, ["inspect", str(path)])
    assert done.exit_code == 2 and words in done.stderr and "TP001" in done.stderr and not done.stdout


def _field(number: int, content: bytes) -> bytes:
    """As protobuf writes one that has a length."""
    size, length = len(content), b""
    while size > 127:
        size, length = size >> 7, length + bytes([size & 127 | 128])
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def test_a_file_that_was_cut_off_or_is_nested_without_end(tmp_path: Path, ours: Path) -> None:
    cut = tmp_path / "cut.onnx"
    cut.write_bytes(ours.read_bytes()[:-200])
    nested = tmp_path / "nested.onnx"
    graph = b""
    for _ in range(300):  # as bytes: helper.make_node refuses it, too
        graph = _field(1, _field(5, _field(1, b"then_branch") + _field(6, graph) + b"\xa0\x01\x05"))
    nested.write_bytes(_field(8, _field(2, b"\x14")) + _field(7, graph))
    for path in (cut, nested):
        done = CliRunner().invoke(main, ["inspect", str(path)])
        assert done.exit_code == 2 and "is no ONNX file, or is cut off" in done.stderr


def test_a_file_that_protobuf_cannot_read_is_not_tried(tmp_path: Path) -> None:
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.truncate(2 << 30)  # sparse: no room is taken
    done = CliRunner().invoke(main, ["inspect", str(path)])
    assert done.exit_code == 2 and "2,147,483,648 bytes" in done.stderr and "external" in done.stderr

"""The certificate beside a model: it fits its schema, and names the very file that was checked."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import jsonschema
import pytest
import torch

import trueport
from trueport.diagnostics.rules.tp810_arm_not_reached import ArmNotReached
from trueport.report import CheckedInput, DecisionSummary, Report, SizeSummary, Verdict, Way
from trueport.report.certificate import certificate, save_certificate
from trueport.source import SourceRoots, Where
from trueport.temporary import Written

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "proof.schema.json").read_text())
REPORT = Report(
    model="Net",
    opset=20,
    checks=(CheckedInput({"batch": 2}, "zeros", Verdict.EQUAL, 1e-7), CheckedInput({}, "ones", Verdict.EQUAL, None)),
    decisions=(DecisionSummary(Where("net.py", 7, "f"), "if", "x > 0", (Way("holds", 2), Way("fails", 0))),),
    free_sizes=(SizeSummary("batch"),),
    diagnostics=(ArmNotReached(message="`x > 0` never fails"),),
    tolerances={"y": "1e-5"},
    seed=0,
    verified=True,
)


def a_file(path: Path, content: bytes) -> Written:
    path.write_bytes(content)
    return Written(path, len(content), hashlib.sha256(content).hexdigest())


def test_it_fits_its_schema_and_says_what_was_not_reached(tmp_path: Path) -> None:
    files = [a_file(tmp_path / "net.onnx", b"model"), a_file(tmp_path / "data", b"weights")]
    written = save_certificate(REPORT, files, SourceRoots.of([]))
    assert written.name == "net.onnx.proof.json"
    content = json.loads(written.read_text())
    jsonschema.validate(content, SCHEMA)
    assert content["_type"] == "https://in-toto.io/Statement/v1"
    assert content["subject"] == [
        {"name": "net.onnx", "digest": {"sha256": hashlib.sha256(b"model").hexdigest()}},
        {"name": "data", "digest": {"sha256": hashlib.sha256(b"weights").hexdigest()}},
    ]
    predicate = content["predicate"]
    assert predicate["result"] == "WARNED"
    assert predicate["passedTests"] == ["the model"]
    assert predicate["warnedTests"] == ["if at net.py:7", "TP810: no warning"]
    assert predicate["trueport"]["not_reached"] == ["net.py:7: fails"]
    assert predicate["trueport"]["check"]["worst_error"] == 1e-7


def test_the_schema_refuses_what_it_does_not_describe(tmp_path: Path) -> None:
    content = certificate(REPORT, [a_file(tmp_path / "net.onnx", b"")], SourceRoots.of([]))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**content, "more": 1}, SCHEMA)
    content["predicate"]["trueport"]["more"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, SCHEMA)


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x * 2
        return -x


def test_an_export_writes_it_on_request_only(tmp_path: Path) -> None:
    trueport.export(Net(), (torch.rand(3),), tmp_path / "a.onnx")
    assert not (tmp_path / "a.onnx.proof.json").exists()
    trueport.export(Net(), (torch.rand(3),), tmp_path / "b.onnx", proof=True)
    content = json.loads((tmp_path / "b.onnx.proof.json").read_text())
    jsonschema.validate(content, SCHEMA)
    (subject,) = content["subject"]
    assert subject["digest"]["sha256"] == hashlib.sha256((tmp_path / "b.onnx").read_bytes()).hexdigest()
    assert content["predicate"]["result"] == "PASSED"
    (decision,) = content["predicate"]["trueport"]["decisions"]
    assert decision["decides_by"] == "x.sum() > 0"
    assert all(decision["ways"].values())

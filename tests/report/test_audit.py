"""`trueport audit`: a certificate is believed where it fits the files, and nowhere else. Both may be anybody's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from click.testing import CliRunner, Result

import trueport
from trueport.cli.main import main
from trueport.cli.outcome import Exit

Statement = dict[str, Any]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with its data and its certificate."""
    folder = tmp_path_factory.mktemp("exported")
    torch.manual_seed(0)
    options: Any = {"dynamic_shapes": ({0: "rows"},), "external_data": True, "proof": True}
    trueport.export(torch.nn.Linear(300, 2).eval(), (torch.rand(3, 300),), folder / "net.onnx", **options)
    return folder


@pytest.fixture
def place(exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for file in exported.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def audit(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["audit", *arguments])


def test_what_is_unchanged_says_what_was_proven_and_what_not(place: Path) -> None:
    shown = audit("net.onnx")
    assert shown.exit_code == Exit.FAITHFUL
    assert shown.stdout.startswith("unchanged net.onnx is the file that was checked")
    assert "PASSED: equal to Linear in eager PyTorch on" in shown.stdout
    assert "rows = 0, 1, 2" in shown.stdout
    assert "it has no signature of its own" in shown.stdout


def test_without_torch(place: Path) -> None:
    program = (
        "import sys; from trueport.cli.main import main\n"
        "try: main(['audit', 'net.onnx'])\n"
        "finally: assert not {'torch', 'onnxruntime'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def _data(place: Path) -> Path:
    return next(place.glob("*.data"))


def _more_data(place: Path) -> None:
    with _data(place).open("ab") as file:
        file.write(b"\0")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda place: (place / "net.onnx").write_bytes(b"another"), "net.onnx is not the file that was checked"),
        (_more_data, "is not the data that was checked"),
        (lambda place: _data(place).unlink(), "is missing, and the model reads it"),
    ],
    ids=["model", "data", "no data"],
)
def test_a_changed_file_is_found(place: Path, change: Callable[[Path], object], told: str) -> None:
    change(place)
    shown = audit("net.onnx")
    assert shown.exit_code == Exit.FINDINGS
    assert "error[TP820]" in shown.stdout
    assert told in shown.stdout


def edited(place: Path, edit: Callable[[Statement], object]) -> Result:
    proof = place / "net.onnx.proof.json"
    statement = json.loads(proof.read_text())
    edit(statement)
    proof.write_text(json.dumps(statement))
    return audit("net.onnx")


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda s: s["subject"].pop(), "of which the certificate says nothing"),
        (lambda s: s["subject"].append({**s["subject"][1], "name": "more"}), "which the model does not read"),
        (lambda s: s["predicate"].update(result="FAILED"), "says that the check failed"),
        (lambda s: s["predicate"].update(failedTests=["the model"]), "says that the check failed"),
        (lambda s: s["predicate"].update(warnedTests=["the model"]), "says PASSED, and lists tests with warnings"),
        (lambda s: s["predicate"]["trueport"]["check"].update(compared=[]), "names no input"),
        (
            lambda s: s["predicate"]["trueport"]["check"]["compared"][0].update(verdict="different"),
            "1 of its inputs are not equal",
        ),
    ],
)
def test_a_certificate_that_contradicts_itself_or_the_model(
    place: Path, edit: Callable[[Statement], object], told: str
) -> None:
    shown = edited(place, edit)
    assert shown.exit_code == Exit.FINDINGS
    assert told in shown.stdout


@pytest.mark.parametrize(
    "edit",
    [
        lambda s: s.update(_type="https://in-toto.io/Statement/v0.1"),
        lambda s: s.update(predicateType="https://slsa.dev/provenance/v1"),
        lambda s: s.update(subject=[]),
        lambda s: s.update(subject=[{"digest": {"sha256": 5}}]),
        lambda s: s["predicate"].pop("trueport"),
        lambda s: s["predicate"]["trueport"].update(schema=1),
        lambda s: s["predicate"]["trueport"]["check"].update(worst_error="none"),
        lambda s: s["predicate"]["trueport"]["check"].update(worst_error=10**400),
        lambda s: s["predicate"]["trueport"].update(check=[]),
    ],
)
def test_what_is_no_certificate_of_ours_is_a_fault_of_the_request(
    place: Path, edit: Callable[[Statement], object]
) -> None:
    shown = edited(place, edit)
    assert shown.exit_code == Exit.USAGE
    assert "is no certificate of trueport" in shown.stderr
    assert shown.stdout == ""


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b"[" * 100_000, b"null", b'{"_type": 1e999}'])
def test_a_certificate_may_hold_anything(place: Path, content: bytes) -> None:
    (place / "net.onnx.proof.json").write_bytes(content)
    assert audit("net.onnx").exit_code == Exit.USAGE


def test_names_move_no_cursor(place: Path) -> None:
    shown = edited(place, lambda s: s["predicate"]["trueport"]["model"].update(name="\x1b[2J\nfaithful"))
    assert shown.exit_code == Exit.FAITHFUL
    assert "\x1b" not in shown.stdout
    assert "\nfaithful" not in shown.stdout


def test_data_outside_the_folder_is_not_looked_at(place: Path) -> None:
    """The hashes fit, since whoever made the model made its certificate."""
    import hashlib

    model = onnx.load("net.onnx", load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        if entry.key == "location":
            entry.value = "../secret"
    onnx.save(model, "net.onnx")
    digest = hashlib.sha256((place / "net.onnx").read_bytes()).hexdigest()
    shown = edited(place, lambda s: s["subject"][0]["digest"].update(sha256=digest))
    assert shown.exit_code == Exit.FINDINGS
    assert "reads data from ../secret, outside its folder" in shown.stdout


def test_as_json(place: Path) -> None:
    told = json.loads(audit("net.onnx", "--output-format", "json").stdout)
    assert (told["ok"], told["findings"]) == (True, [])
    assert told["statement"]["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"


def test_no_certificate_and_no_model(place: Path) -> None:
    assert audit("other.onnx").exit_code == Exit.USAGE
    (place / "net.onnx.proof.json").rename(place / "elsewhere.json")
    shown = audit("net.onnx")
    assert shown.exit_code == Exit.USAGE
    assert "has no certificate" in shown.stderr
    assert audit("net.onnx", "--proof", "elsewhere.json").exit_code == Exit.FAITHFUL

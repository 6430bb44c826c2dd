"""Reads a certificate, and holds it against the files that it speaks of. Nothing is run, and nothing is believed: both
the certificate and the model may be anybody's.

What can be told: that these are the files that were checked, and what the certificate says of the check. What cannot:
who wrote the certificate. A signature tells that (docs/certificate.md).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp820_proof_does_not_fit import ProofDoesNotFit
from trueport.report.certificate import SCHEMA, STATEMENT, SUFFIX, TEST_RESULT

_LARGEST = 64 << 20
"""Bytes of a certificate that is read."""
_PIECE = 1 << 20
_SHOWN = 12
_AGAIN = "export the model again, which writes a new certificate"

Fact = tuple[str, str]


class NotACertificate(Exception):
    """The file is no certificate of ours."""


@dataclass(frozen=True)
class Audit:
    """What came of it: the certificate, and what is wrong with it."""

    statement: Mapping[str, Any]
    findings: tuple[Diagnostic, ...]

    def facts(self) -> Iterator[Fact]:
        """What the certificate says was checked, and what was not, as lines with a head."""
        predicate, details = self.statement["predicate"], self.statement["predicate"]["trueport"]
        for index, subject in enumerate(self.statement["subject"]):
            yield "" if index else "files", f"{subject['name']}  sha256 {subject['digest']['sha256']}"
        check = details["check"]
        versions = ", ".join(f"{name} {version}" for name, version in details["versions"].items())
        yield "made", f"{details['made']} with {versions}"
        compared = check["compared"]
        worst = "" if check["worst_error"] is None else f", worst difference {check['worst_error']:.2g}"
        told = f"equal to {details['model']['name']} in eager PyTorch on {len(compared)} inputs{worst}"
        yield "result", f"{predicate['result']}: {told}"
        yield from _listed("sizes", _sizes_tried(compared))
        yield from _listed("values", sorted({word for one in compared for word in one["values"].split(", ")}), sep=", ")
        yield from _listed("allowed", [f"{name}: {text}" for name, text in check["tolerances"].items()])
        if details["calls"] is not None:
            calls = details["calls"]
            yield "calls", f"{calls['equal_on_edge_operands']} of {calls['distinct']} equal on edge operands"
        yield "repeat", f"with seed {check['seed']}"
        yield from _listed("not covered", list(self._not_covered(details)))

    @staticmethod
    def _not_covered(details: Mapping[str, Any]) -> Iterator[str]:
        yield from (f"not reached: {text}" for text in details["not_reached"])
        yield from (f"assumed: {text}" for text in details["assumptions"])
        yield from (f"not decided: {text}" for text in details["check"]["undecided"])
        if details["check"]["checked_in_part"]:
            yield details["check"]["checked_in_part"]
        if details["calls"] is not None:
            yield from (f"not run by itself: {name} ({why})" for name, why in details["calls"]["not_run"].items())
        yield from (f"{each['code']}: {each['message']}" for each in details["findings"] if each["severity"] != "note")
        yield "inputs and sizes that are not listed above; other runtimes and versions than those named"
        yield "who wrote the certificate: it has no signature of its own (docs/certificate.md says how to sign it)"


def certificate_of(model: Path) -> Path:
    """Where the certificate of a model is, where nobody names another."""
    return model.with_name(model.name + SUFFIX)


def audit(model: Path, proof: Path) -> Audit:
    """Hold a certificate against a file. Raises NotACertificate, and OSError where one of them cannot be read."""
    statement = _read(proof)
    return Audit(statement, (*_of_files(model, statement["subject"]), *_contradictions(statement)))


def _read(proof: Path) -> Mapping[str, Any]:
    if proof.stat().st_size > _LARGEST:
        raise NotACertificate(f"it has more than {_LARGEST >> 20} MB")
    try:
        statement = json.loads(proof.read_bytes())
    except (ValueError, RecursionError) as wrong:
        raise NotACertificate(f"it is no JSON: {wrong}") from None
    fault = _misfit(statement, _FORM, "the certificate")
    if fault:
        raise NotACertificate(fault)
    assert isinstance(statement, Mapping)
    return statement


def _of_files(model: Path, subjects: Sequence[Mapping[str, Any]]) -> Iterator[Diagnostic]:
    """The file that was checked, with all of its data and no other."""
    first, *data = subjects
    digest = _sha256(model)
    if digest != first["digest"]["sha256"]:
        yield ProofDoesNotFit(
            message=f"{model} is not the file that was checked",
            seen=(f"sha256 of the file: {digest}", f"of the certificate: {first['digest']['sha256']}"),
            fix=f"{_AGAIN}; or compare it with the file that was checked: trueport verify checked.onnx {model.name}",
        )
        return
    wanted = {each["name"]: each["digest"]["sha256"] for each in data}
    named = _data_named_by(model)
    for name in sorted(named | wanted.keys()):
        if Path(name).name != name:
            yield ProofDoesNotFit(message=f"the model reads data from {name}, outside its folder", fix=_AGAIN)
        elif name not in wanted:
            yield ProofDoesNotFit(message=f"the model reads {name}, of which the certificate says nothing", fix=_AGAIN)
        elif name not in named:
            yield ProofDoesNotFit(message=f"the certificate names {name}, which the model does not read", fix=_AGAIN)
        elif not (beside := model.with_name(name)).is_file():
            yield ProofDoesNotFit(message=f"{beside} is missing, and the model reads it", fix="put it beside the model")
        elif (found := _sha256(beside)) != wanted[name]:
            yield ProofDoesNotFit(
                message=f"{beside} is not the data that was checked",
                seen=(f"sha256 of the file: {found}", f"of the certificate: {wanted[name]}"),
                fix=_AGAIN,
            )


def _contradictions(statement: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """Where the verdict says more than what it is drawn from."""
    predicate = statement["predicate"]
    check = predicate["trueport"]["check"]
    not_equal = [each for each in check["compared"] if each["verdict"] not in ("equal", "alike")]
    said = predicate["result"]
    wrong = []
    if said == "FAILED" or predicate["failedTests"]:
        wrong.append("it says that the check failed")
    if not check["compared"]:
        wrong.append("it names no input that was compared")
    if not_equal:
        wrong.append(f"{len(not_equal)} of its inputs are not equal")
    if any(each["severity"] == "error" for each in predicate["trueport"]["findings"]):
        wrong.append("it lists an error")
    if said == "PASSED" and predicate["warnedTests"]:
        wrong.append("it says PASSED, and lists tests with warnings")
    if wrong:
        yield ProofDoesNotFit(message=f"the certificate proves nothing: {'; '.join(wrong)}", fix=_AGAIN)


def _data_named_by(model: Path) -> set[str]:
    """The data files that an ONNX file reads, as it names them."""
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        content = onnx.load(model, "protobuf", load_external_data=False)
    except DecodeError:
        return set()
    return {entry.value for held in _tensors(content.graph) for entry in held.external_data if entry.key == "location"}


def _tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _sizes_tried(compared: Sequence[Mapping[str, Any]]) -> list[str]:
    tried: dict[str, set[int]] = {}
    for one in compared:
        for name, size in one["sizes"].items():
            tried.setdefault(name, set()).add(size)
    return [f"{name} = {', '.join(map(str, sorted(sizes)))}" for name, sizes in tried.items()]


def _listed(head: str, texts: Sequence[str], sep: str = "") -> Iterator[Fact]:
    if sep:
        texts = [sep.join(texts)] if texts else []
    for index, text in enumerate(texts[:_SHOWN]):
        yield ("" if index else head), text
    if len(texts) > _SHOWN:
        yield "", f"… {len(texts) - _SHOWN} more"


# What is read of a certificate, and of which kind it must be: it may be anybody's file.
_TEXTS: Any = {str: str}
_FORM: Any = {
    "_type": STATEMENT,
    "predicateType": TEST_RESULT,
    "subject": [{"name": str, "digest": {"sha256": str}}],
    "predicate": {
        "result": str,
        "warnedTests": [str],
        "failedTests": [str],
        "trueport": {
            "schema": SCHEMA,
            "made": str,
            "model": {"name": str},
            "versions": _TEXTS,
            "not_reached": [str],
            "assumptions": [str],
            "findings": [{"code": str, "severity": str, "message": str}],
            "calls": (
                type(None),
                {"distinct": int, "equal_on_edge_operands": int, "not_run": _TEXTS},
            ),
            "check": {
                "seed": (int, type(None)),
                "compared": [{"sizes": {str: int}, "values": str, "verdict": str}],
                "undecided": [str],
                "checked_in_part": str,
                "tolerances": _TEXTS,
                "worst_error": (float, type(None)),
            },
        },
    },
}


def _misfit(value: Any, form: Any, at: str) -> str:
    """How a value differs from a form: a class, a constant, a tuple of choices, a list of one kind, or a dict."""
    if isinstance(form, tuple):
        return "" if any(not _misfit(value, each, at) for each in form) else f"{at} is of another kind"
    if isinstance(form, type):
        right = isinstance(value, form) and not (form is int and isinstance(value, bool))
        return "" if right else f"{at} is no {form.__name__}"
    if isinstance(form, list):
        if not isinstance(value, list) or (at.endswith(".subject") and not value):
            return f"{at} is no list"
        return next(filter(None, (_misfit(each, form[0], f"{at}[{i}]") for i, each in enumerate(value))), "")
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return f"{at} is no object"
        if str in form:
            return next(filter(None, (_misfit(each, form[str], f"{at}.{key}") for key, each in value.items())), "")
        missing = [key for key in form if key not in value]
        if missing:
            return f"{at} has no {missing[0]}"
        return next(filter(None, (_misfit(value[key], each, f"{at}.{key}") for key, each in form.items())), "")
    return "" if value == form else f"{at} is not {form!r}"

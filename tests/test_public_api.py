"""What is public. A change here is a change for users, and belongs in the CHANGELOG."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import trueport
from trueport import api


def test_the_public_names() -> None:
    assert sorted(trueport.__all__) == [
        "Diagnostic",
        "ExportError",
        "Program",
        "Report",
        "TrueportError",
        "UsageError",
        "check",
        "export",
        "op",
        "sweep",
        "verify",
    ]


def test_every_public_name_is_there() -> None:
    for name in trueport.__all__:
        assert getattr(trueport, name).__doc__, name


def test_what_a_program_can_be_asked() -> None:
    public = {name for name in dir(trueport.Program) if not name.startswith("_")}
    assert public == {"captured", "feeds", "input_names", "model_proto", "output_names", "rewritten", "save"}


def test_export_takes_the_arguments_of_torch_onnx_export() -> None:
    """Changing the name of the function is the migration: every argument of torch's, in its order, of its kind, and
    with its default. What differs is said here."""
    ours, torchs = (inspect.signature(each).parameters for each in (trueport.export, torch.onnx.export))
    assert list(ours)[: len(torchs)] == list(torchs)
    others = {"external_data": None, "verify": True}
    for name, theirs in torchs.items():
        assert ours[name].kind is theirs.kind, name
        assert ours[name].default == others.get(name, theirs.default), name


def test_check_and_verify_have_the_options_of_export() -> None:
    exporting = inspect.signature(trueport.export).parameters
    for function in (api.check, api.verify):
        parameters = inspect.signature(function).parameters
        assert all(each.kind is not inspect.Parameter.VAR_KEYWORD for each in parameters.values())
        for name, each in parameters.items():
            if name in exporting:
                assert each.default == exporting[name].default, name


@pytest.mark.parametrize("function", [api.export, api.check, api.verify])
def test_every_argument_is_described(function: Callable[..., object]) -> None:
    text = inspect.getdoc(function) or ""
    described = re.findall(r"^    \*{0,2}(\w+):", text, flags=re.MULTILINE)
    assert described[: len(inspect.signature(function).parameters)] == list(inspect.signature(function).parameters)
    assert all(f"{heading}:\n" in text for heading in ("Args", "Returns", "Raises", "Example"))


@pytest.mark.parametrize("function", [api.export, api.check, api.verify])
def test_the_examples_of_the_docstrings_run(
    function: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (found,) = doctest.DocTestFinder(recurse=False).find(function, globs={})
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(found).failed == 0
    assert found.examples


def test_a_usage_error_is_caught_by_who_catches_export_errors() -> None:
    assert issubclass(trueport.UsageError, trueport.ExportError)
    assert issubclass(trueport.ExportError, trueport.TrueportError)


def test_verify_is_a_function_and_a_folder() -> None:
    import trueport.verify.runtime.sandbox as sandbox

    assert trueport.verify.runtime.sandbox is sandbox
    with pytest.raises(trueport.UsageError, match="no file"):
        trueport.verify("missing.onnx", None)

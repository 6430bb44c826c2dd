"""What is public. A change here is a change for users, and belongs in the CHANGELOG."""

from __future__ import annotations

import inspect

import pytest

import trueport


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
    assert public == {"captured", "feeds", "input_names", "output_names", "rewritten", "save"}


def test_export_takes_the_arguments_of_torch_onnx_export() -> None:
    """Changing the import is the migration, so these names and their order are part of the promise."""
    parameters = list(inspect.signature(trueport.export).parameters)
    assert parameters[:3] == ["model", "args", "f"]
    assert set(parameters) >= {
        "kwargs",
        "dynamic_shapes",
        "dynamic_axes",
        "input_names",
        "output_names",
        "opset_version",
        "custom_translation_table",
        "external_data",
        "verify",
    }


def test_a_usage_error_is_caught_by_who_catches_export_errors() -> None:
    assert issubclass(trueport.UsageError, trueport.ExportError)
    assert issubclass(trueport.ExportError, trueport.TrueportError)


def test_verify_is_a_function_and_a_folder() -> None:
    import trueport.verify.runtime.sandbox as sandbox

    assert trueport.verify.runtime.sandbox is sandbox
    with pytest.raises(trueport.UsageError, match="no file"):
        trueport.verify("missing.onnx", None)

"""`[tool.trueport]` in pyproject.toml is read as if its flags had been typed; what is typed counts more."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from trueport.cli.config import defaults
from trueport.cli.main import main
from trueport.cli.outcome import Exit
from trueport.errors import UsageError


def configured(folder: Path, text: str) -> dict[str, dict[str, object]]:
    (folder / "pyproject.toml").write_text(text)
    return defaults(main.commands, folder)


def test_a_flag_reaches_every_command_that_has_it(tmp_path: Path) -> None:
    found = configured(tmp_path, '[tool.trueport]\ndim = ["B=1..8"]\nopset = 21\noutput = "net.onnx"\n')
    assert found["check"] == {"dims": ["B=1..8"], "opset": 21}
    assert found["export"] == {"dims": ["B=1..8"], "opset": 21, "output": "net.onnx"}


def test_a_choice_reaches_the_commands_that_offer_it(tmp_path: Path) -> None:
    found = configured(tmp_path, '[tool.trueport]\noutput-format = "sarif"\n')
    assert found["export"] == {"output_format": "sarif"} and found["inspect"] == {}
    assert configured(tmp_path, '[tool.trueport]\noutput-format = "json"\n')["inspect"] == {"output_format": "json"}


def test_a_command_may_have_a_table_of_its_own(tmp_path: Path) -> None:
    found = configured(tmp_path, "[tool.trueport]\nopset = 20\n[tool.trueport.export]\nopset = 21\nverify = false\n")
    assert found["check"] == {"opset": 20}
    assert found["export"] == {"opset": 21, "verify": False}


def test_every_flag_can_be_set(tmp_path: Path) -> None:
    """Whatever a command offers, but for its help, has a key in the file."""
    for command in (main.commands["export"], main.commands["check"]):
        for option in command.params:
            flags = [flag for flag in option.opts if flag.startswith("--")]
            if not flags:
                continue
            value = "true" if getattr(option, "is_flag", False) else '"json"'
            found = configured(tmp_path, f"[tool.trueport.{command.name}]\n{flags[0][2:]} = {value}\n")
            assert list(found[str(command.name)]) == [option.name]


def test_one_text_stands_for_a_list_and_a_list_for_names_with_commas(tmp_path: Path) -> None:
    found = configured(tmp_path, '[tool.trueport]\nignore = "TP303"\nconstants = ["axis", "mode"]\n')
    assert found["check"] == {"ignore": ["TP303"], "constants": "axis,mode"}


def test_the_nearest_file_with_such_a_table_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "pyproject.toml").write_text("[tool.other]\n")
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.trueport]\nopset = 21\n")
    (tmp_path / "pyproject.toml").write_text("[tool.trueport]\nopset = 19\n")
    assert defaults(main.commands, inner)["check"] == {"opset": 21}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[tool.trueport]\nopsets = 20\n", "did you mean opset?"),
        ("[tool.trueport.check]\noverwrite = true\n", "[tool.trueport.check] has no key 'overwrite'"),
        ("[tool.trueport]\noverwrite = 3\n", "give it true or false"),
        ("[tool.trueport]\nopset = true\n", "is not a value of --opset"),
        ("[tool.trueport\n", "cannot be read"),
    ],
    ids=["misspelt", "not of this command", "not a truth", "not a number", "not TOML"],
)
def test_what_makes_no_sense_is_told_with_the_file(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        configured(tmp_path, text)
    (found,) = caught.value.diagnostics
    assert str(tmp_path / "pyproject.toml") in found.message
    assert says in f"{found.message} {found.fix}"


def test_what_is_typed_counts_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.trueport]\nreport = "r.pdf"\noutput = "net.onnx"\n')
    refused = CliRunner().invoke(main, ["export", "nowhere.py:Net"])
    assert refused.exit_code == Exit.USAGE
    assert "--report r.pdf" in refused.stderr
    typed = CliRunner().invoke(main, ["export", "nowhere.py:Net", "--report", "r.html"])
    assert "nowhere.py" in typed.stderr
    assert "r.pdf" not in typed.stderr


def test_a_broken_file_does_not_hide_the_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.trueport\n")
    assert CliRunner().invoke(main, ["--help"]).exit_code == Exit.FAITHFUL
    assert CliRunner().invoke(main, ["explain"]).exit_code == Exit.USAGE

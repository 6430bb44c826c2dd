"""`trueport generate export`, the whole way."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from trueport.cli.main import main
from trueport.cli.outcome import Exit

pytest.importorskip("transformers")

MODEL = """
from tests.generation.models import llama
"""


def run(*arguments: str):
    return CliRunner().invoke(main, ["generate", "export", *arguments])


def test_a_folder_in_and_a_folder_out(tmp_path):
    from tests.generation.models import llama

    llama().save_pretrained(tmp_path / "in")
    done = run(str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--tokens", "4", "-q")
    assert done.exit_code == Exit.FAITHFUL, done.output
    assert "3 rows, prompt 3 + 1 + 3: 4 tokens equal" in done.stdout
    assert {"model.onnx", "genai_config.json"} <= {file.name for file in (tmp_path / "out").iterdir()}
    again = run(str(tmp_path / "in"), "-o", str(tmp_path / "out"))
    assert again.exit_code == Exit.USAGE
    assert "--force" in again.stderr


def test_a_file_that_makes_the_model(tmp_path):
    (tmp_path / "net.py").write_text(MODEL)
    done = run(f"{tmp_path / 'net.py'}:llama", "-o", str(tmp_path / "out"), "--no-verify", "-q")
    assert done.exit_code == Exit.FAITHFUL, done.output
    assert "not verified" in done.stdout
    assert "generation was not compared" in done.stdout


def test_a_folder_without_a_model(tmp_path):
    done = run(str(tmp_path), "-o", str(tmp_path / "out"), "-q")
    assert done.exit_code == Exit.USAGE
    assert "has no config.json" in done.stderr

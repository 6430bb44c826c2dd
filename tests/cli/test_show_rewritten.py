"""`trueport export --show-rewritten`: the functions as they were traced, on stdout before the report."""

from __future__ import annotations

import json

from click.testing import CliRunner

from tests.cli.conftest import MODEL
from trueport.cli.main import main


def test_the_functions_are_printed(target):
    ran = CliRunner().invoke(main, [*target, "--show-rewritten"])
    assert ran.exit_code == 0, ran.output
    assert "model.py:4  Net.forward" in ran.stdout
    assert "trueport.if_return(x.sum() > 0, tp_then_1, tp_else_2" in ran.stdout


def test_only_on_request(target):
    ran = CliRunner().invoke(main, target)
    assert ran.exit_code == 0, ran.output
    assert "tp_then" not in ran.output


def test_a_machines_format_stays_alone_on_stdout(target):
    ran = CliRunner().invoke(main, [*target, "--show-rewritten", "--output-format", "json"])
    assert ran.exit_code == 0, ran.output
    json.loads(ran.stdout)
    assert "tp_then" in ran.stderr


def test_also_when_the_export_is_refused(target, tmp_path):
    """That is when one wants to see them."""
    (tmp_path / "model.py").write_text(MODEL.replace("return x * 2", "return x.double()"))
    ran = CliRunner().invoke(main, [*target, "--show-rewritten"])
    assert ran.exit_code == 1, ran.output
    assert "model.py:4  Net.forward" in ran.stdout
    assert "tp_then" in ran.stdout
    assert "TP103" in ran.output

"""`--debug` shows why traces began anew, and has every graph held against the spec; afterwards all is as before."""

from __future__ import annotations

import logging
import os

from click.testing import CliRunner

from trueport.cli.debugging import VALIDATE, debugging
from trueport.cli.main import main


def test_each_start_of_a_trace_is_told(target):
    ran = CliRunner().invoke(main, [*target, "--debug"])
    assert ran.exit_code == 0, ran.output
    assert "trueport.capture: trace 1 ends at" in ran.stderr
    assert "model.py:5: `Net.forward` decides by a traced value" in ran.stderr
    assert "trueport.capture" not in ran.stdout


def test_only_on_request(target):
    ran = CliRunner().invoke(main, target)
    assert ran.exit_code == 0, ran.output
    assert "trueport.capture" not in ran.output


def test_nothing_is_left_on(monkeypatch):
    monkeypatch.delenv(VALIDATE)
    logger = logging.getLogger("trueport.capture")
    before = (logger.level, list(logger.handlers))
    with debugging():
        assert logger.isEnabledFor(logging.DEBUG)
        assert os.environ[VALIDATE] == "1"
    assert (logger.level, logger.handlers) == before
    assert VALIDATE not in os.environ

"""docs/gallery.md holds what `trueport check` prints about ten broken models, letter by letter.

    TRUEPORT_SNAPSHOTS=write pytest tests/gallery

writes the outputs anew; read them as the user who wrote the model before committing them.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from trueport.cli.main import main

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "gallery.md"
MODELS = REPOSITORY / "examples" / "gallery"
SHOWN = re.compile(r"```sh\ntrueport (?P<words>[^\n]+)\n```\n\n```text\n(?P<output>.*?)```", re.S)
COMMANDS = [found["words"] for found in SHOWN.finditer(PAGE.read_text())]


def shown_by(words: str) -> str:
    """What the command prints, without the clock and the machine in it."""
    torch.manual_seed(0)
    printed = CliRunner().invoke(main, [*shlex.split(words), "--quiet"]).output  # progress comes by the clock
    printed = re.sub(r"\d+\.\d\d s\b", "0.00 s", printed)
    printed = re.sub(r"(?m)^  versions .*\n", "", printed)
    return printed.replace(f"{MODELS}/", "")


@pytest.mark.parametrize("words", COMMANDS)
def test_the_page_shows_what_is_printed(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(MODELS)
    monkeypatch.setenv("NO_COLOR", "1")
    printed = shown_by(words)
    if os.environ.get("TRUEPORT_SNAPSHOTS") == "write":
        page = PAGE.read_text()
        kept = next(found for found in SHOWN.finditer(page) if found["words"] == words)
        PAGE.write_text(page[: kept.start("output")] + printed + page[kept.end("output") :])
    kept = next(found for found in SHOWN.finditer(PAGE.read_text()) if found["words"] == words)
    assert printed == kept["output"]


def test_every_model_of_the_folder_is_on_the_page_and_refused() -> None:
    named = {words.split()[1].partition(".py")[0] for words in COMMANDS}
    assert named == {file.stem for file in MODELS.glob("*.py")}
    assert len(named) == 10
    refusals = [found["output"] for found in SHOWN.finditer(PAGE.read_text())]
    assert all(output.startswith(("refused", "error")) for output in refusals)

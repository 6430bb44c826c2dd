"""The options that say how a model is compared with eager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import click

from trueport.cli.request import as_meant, usage_error

Command = TypeVar("Command", bound=Callable[..., Any])
AskedTolerance = float | dict[str, float] | None
SUFFIX = ".counterexample"
"""What the folder beside the model is called, where nobody names another."""


def checking_options(command: Command) -> Command:
    """Add the options of the check; `Checking` is made of them."""
    for option in reversed(
        [
            click.option("--thorough", is_flag=True, help="Search longer for inputs that go other ways."),
            click.option("--seed", type=int, default=0, metavar="N", help="Of the inputs that are drawn."),
            click.option(
                "--rtol", multiple=True, metavar="[OUTPUT=]X",
                help="How far a float may be off, as a share of it; for all outputs or for one.",
            ),
            click.option("--atol", multiple=True, metavar="[OUTPUT=]X", help="The same as a plain difference."),
            click.option("--nonfinite", is_flag=True, help="Try NaN and infinities, too."),
            click.option(
                "--counterexample", metavar="FOLDER",
                help="Where to keep an input that shows a difference, and a script; else beside the model.",
            ),
        ]
    ):  # fmt: skip
        command = option(command)
    return command


@dataclass(frozen=True)
class Checking:
    """What was asked of the check. Take it from a command's options with `taken_from`."""

    thorough: bool
    seed: int
    rtol: AskedTolerance
    atol: AskedTolerance
    nonfinite: bool
    counterexample: str | None

    @classmethod
    def taken_from(cls, options: dict[str, Any], file: str | None = None) -> Checking:
        """Made of the options of `checking_options`, which are taken out of the others. `file` is the model's, where
        there is one: a counterexample goes beside it, unless another folder is named. Raises UsageError."""
        folder = options.pop("counterexample")
        if folder is None and file is not None:
            folder = f"{file}{SUFFIX}"
        if folder is not None and Path(folder).is_file():
            raise usage_error(f"{folder} is a file, and no folder", fix="name another with --counterexample")
        return cls(
            options.pop("thorough"),
            options.pop("seed"),
            _tolerance("rtol", options.pop("rtol")),
            _tolerance("atol", options.pop("atol")),
            options.pop("nonfinite"),
            folder,
        )

    def arguments(self, start: Path) -> dict[str, Any]:
        """As `trueport.api` takes them. `start` is the folder that the command began in."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        folder = self.counterexample
        return given | {"counterexample": None if folder is None else as_meant(folder, start)}


def _tolerance(option: str, texts: Sequence[str]) -> AskedTolerance:
    """`1e-3` for all outputs, `logits=1e-3` for one of them."""
    by_output: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            by_output[name] = float(number)
        except ValueError:
            raise usage_error(f"--{option} {text} is not a number", fix=f"--{option} 1e-3 or y=1e-3") from None
    if "" in by_output:
        if len(by_output) > 1:
            raise usage_error(
                f"--{option} is given for all outputs and for one", fix=f"name the output in each --{option}"
            )
        return by_output[""]
    return by_output or None

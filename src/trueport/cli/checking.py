"""The options that say how a model is compared with eager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from trueport.cli.request import usage_error

Command = TypeVar("Command", bound=Callable[..., Any])
_TOLERANCES = ("rtol", "atol")
SUFFIX = ".counterexample"
"""What the folder beside the model is called, where nobody names another."""


def checking_options(command: Command) -> Command:
    """Add the options of the check; `take_checking` reads them."""
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


def take_checking(options: dict[str, Any], file: str | None = None) -> dict[str, Any]:
    """Take the check's own options out of a command's, as `trueport.api` takes them. `file` is the model's, where there
    is one: a counterexample goes beside it, unless another folder is named.
    """
    taken = {name: options.pop(name) for name in ("thorough", "seed", "nonfinite", "counterexample")}
    if taken["counterexample"] is None and file is not None:
        taken["counterexample"] = f"{file}{SUFFIX}"
    if taken["counterexample"] is not None and Path(taken["counterexample"]).is_file():
        raise usage_error(
            f"{taken['counterexample']} is a file, and no folder", fix="name another with --counterexample"
        )
    return taken | {name: _tolerance(name, options.pop(name)) for name in _TOLERANCES}


def _tolerance(option: str, texts: Sequence[str]) -> float | dict[str, float] | None:
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

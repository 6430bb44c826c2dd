"""A way out in the words of the front end that it is read in: `overwrite=True` in Python, `--overwrite` in a shell.

A fix names an option once. It is a text in Python's spelling, which knows its other spelling; the command line asks for
that before it prints anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueport.diagnostics.base import Diagnostic

_FLAGS = {"opset_version": "opset", "dynamic_shapes": "input", "optimize": "passes"}
"""Options whose flag has another name."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option, as it is written in Python and on the command line."""

    python: str
    flag: str


class Spelt(str):
    """A text in Python's spelling, with the one of the command line."""

    in_a_shell: str

    def __new__(cls, python: str, in_a_shell: str) -> Spelt:
        made = super().__new__(cls, python)
        made.in_a_shell = in_a_shell
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # as a pickle needs them
        return str.__str__(self), self.in_a_shell


def told(*parts: str | Option) -> Spelt:
    """`told("pass ", option("overwrite", True), " to replace it")`."""
    return Spelt(
        "".join(each.python if isinstance(each, Option) else each for each in parts),
        "".join(each.flag if isinstance(each, Option) else in_words(each) for each in parts),
    )


def option(name: str, value: Any) -> Option:
    """An option of `export` by its Python name; a value that the user is to choose is `...`."""
    flag = f"--{_FLAGS.get(name, name).replace('_', '-')}"
    if value is ...:
        return Option(f"{name}=...", f"{flag} ...")
    if value is True:
        return Option(f"{name}=True", flag)
    if value is False:
        return Option(f"{name}=False", f"--no-{flag[2:]}")
    if isinstance(value, str):
        return Option(f'{name}="{value}"', f"{flag} {value}")
    if isinstance(value, Iterable):
        names = [str(each) for each in value]
        quoted = ", ".join(f'"{each}"' for each in names)
        return Option(f"{name}=[{quoted}]", f"{flag} {','.join(names)}")
    return Option(f"{name}={value!r}", f"{flag} {value}")


def size_range(name: str, minimum: int | None = None, maximum: int | None = None) -> Option:
    """The range of a free size."""
    bounds = {"min": minimum, "max": maximum}
    given = "".join(f", {end}={bound}" for end, bound in bounds.items() if bound is not None)
    low, high = ("" if bound is None else bound for bound in (minimum, maximum))
    return Option(f'Dim("{name}"{given})', f"--dim {name}={low}..{high}")


VALUES = Option('value_ranges={"ids": (0, 999)}', "-i ids:BxS:i64@0..999")
"""The range of the values that an input takes."""
NO_PASSES = Option("optimize=False", "--no-optimise")
"""No pass over the graph."""
EXPORT = Option("`trueport.export`", "`trueport export`")
"""The function, or the command."""


def in_words(text: str) -> str:
    """A text as the command line spells it."""
    return text.in_a_shell if isinstance(text, Spelt) else text


def in_a_shell(found: Diagnostic) -> Diagnostic:
    """The finding as the command line tells it."""
    if not isinstance(found.fix, Spelt) and not isinstance(found.message, Spelt):
        return found
    return replace(found, message=in_words(found.message), fix=in_words(found.fix))

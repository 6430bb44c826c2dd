"""What was typed: which model, with which inputs. A way out may be to type it differently."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

_FLAGS = {"runtime": "target"}
"""Options that are typed otherwise than they are called."""


@dataclass(frozen=True)
class Command:
    """The arguments of a command of trueport, as they were given."""

    target: str
    inputs: tuple[str, ...] = ()
    dims: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    """Every other option by its name, also those that were not given."""

    def text(self, verb: str, *more: str) -> str:
        """The command as it can be typed."""
        return shlex.join(["trueport", verb, self.target, *self._options(), *more])

    def _options(self) -> Iterator[str]:
        for name, value in (("-i", self.inputs), ("--dim", self.dims), *self.options.items()):
            flag = name if name.startswith("-") else f"--{_FLAGS.get(name, name).replace('_', '-')}"
            if value is True:
                yield flag
            elif value:
                for text in value if isinstance(value, tuple) else (value,):
                    yield from (flag, str(text))

    def given(self, name: str) -> Any:
        """The value of an option; None where it was not given."""
        return self.options.get(name)

    def with_option(self, name: str, value: Any) -> Command:
        return replace(self, options={**self.options, name: value})

    def with_constant(self, name: str) -> Command:
        given = self.given("constants")
        names = [*(given.split(",") if given else []), name]
        return self.with_option("constants", ",".join(dict.fromkeys(names)))

    def with_range(self, name: str, low: int | None, high: int | None) -> Command:
        """A free size narrowed; what was said of it before is replaced."""
        others = tuple(text for text in self.dims if text.partition("=")[0].strip() != name)
        bounds = f"{'' if low is None else low}..{'' if high is None else high}"
        return replace(self, dims=(*others, f"{name}={bounds}"))

    def with_fixed_size(self, name: str, value: int) -> Command:
        """A free size as a number, wherever an input has it; what was said of its range goes."""

        def fixed(text: str) -> str:
            end = next((at for at, letter in enumerate(text) if letter in "@="), len(text))
            words = text[:end].split(":")
            sizes = 0 if len(words) == 1 else 1  # a name may come first, and may be the letter of a size
            words[sizes] = re.sub(rf"(?:(?<=x)|^){re.escape(name)}(?=x|$)", str(value), words[sizes])
            return ":".join(words) + text[end:]

        dims = tuple(text for text in self.dims if text.partition("=")[0].strip() != name)
        return replace(self, inputs=tuple(map(fixed, self.inputs)), dims=dims)

    def with_input(self, old: str, new: str) -> Command:
        return replace(self, inputs=tuple(new if text == old else text for text in self.inputs))

"""What was typed: which model, with which inputs. A way out may be to type it differently."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Command:
    """The arguments of a command of trueport, as they were given."""

    target: str
    inputs: tuple[str, ...] = ()
    dims: tuple[str, ...] = ()
    weights: str | None = None
    constants: str | None = None
    opset: int | None = None
    state: str | None = None
    checking: Mapping[str, Any] = field(default_factory=dict)
    """The options of the check, by name."""

    def text(self, verb: str, *more: str) -> str:
        """The command as it can be typed."""
        return shlex.join(["trueport", verb, self.target, *self._options(), *more])

    def _options(self) -> Iterator[str]:
        for text in self.inputs:
            yield from ("-i", text)
        for text in self.dims:
            yield from ("--dim", text)
        for flag, value in (
            ("--weights", self.weights),
            ("--constants", self.constants),
            ("--opset", self.opset),
            ("--state", self.state),
        ):
            if value is not None:
                yield from (flag, str(value))
        for name, value in self.checking.items():
            flag = f"--{name.replace('_', '-')}"
            if value is True:
                yield flag
            elif value:
                for text in value if isinstance(value, tuple) else (value,):
                    yield from (flag, str(text))

    def with_constant(self, name: str) -> Command:
        names = [*(self.constants.split(",") if self.constants else []), name]
        return replace(self, constants=",".join(dict.fromkeys(names)))

    def with_range(self, name: str, low: int | None, high: int | None) -> Command:
        """A free size narrowed; what was said of it before is replaced."""
        others = tuple(text for text in self.dims if text.partition("=")[0].strip() != name)
        bounds = f"{'' if low is None else low}..{'' if high is None else high}"
        return replace(self, dims=(*others, f"{name}={bounds}"))

    def with_input(self, old: str, new: str) -> Command:
        return replace(self, inputs=tuple(new if text == old else text for text in self.inputs))

"""Which real value stands for which complex one."""

from __future__ import annotations

from typing import Any

from trueport.graph.regions import Value


class Twins:
    """The real values that stand for complex ones in one model."""

    def __init__(self) -> None:
        self._twins: dict[Value, Value] = {}
        self._origins: dict[Value, Value] = {}

    def of(self, value: Value) -> Value:
        if value not in self._twins:
            twin = self._twins[value] = Value(value.dtype.to_real(), (*value.shape, 2), value.name)
            self._origins[twin] = value
        return self._twins[value]

    def origin(self, value: Value) -> Value:
        """The captured value that a twin stands for; any other value is its own."""
        return self._origins.get(value, value)

    def everywhere(self, arg: Any) -> Any:
        """An argument with twins for the complex values in it."""
        if isinstance(arg, Value):
            return self.of(arg) if is_complex(arg) else arg
        if isinstance(arg, list | tuple):
            return tuple(self.everywhere(item) for item in arg)
        return arg


def is_complex(value: object) -> bool:
    return isinstance(value, Value) and value.dtype.is_complex

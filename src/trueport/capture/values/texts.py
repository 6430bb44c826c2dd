"""Text that a traced number is a part of: `str(n)`, `f"layer{n}"`.

It reads like any text, with a symbol's name where the number will be, which is fine in a message. Where it is a key or
the name of an attribute, the number in it is what decides (`choices.py`).
"""

from __future__ import annotations

from typing import Any

import torch


class Message(str):
    """Text in which a traced number stands by its name: good to be shown, and for nothing that depends on it."""

    def _refuse(self, *_: Any) -> Any:
        raise TypeError(
            "the text of a number that is being traced (a SymInt or SymFloat) is used for more than a message"
        )


for _name in (
    "__len__ __iter__ __getitem__ __contains__ __eq__ __ne__ __lt__ __gt__ __hash__"
    " split index find count replace isdigit startswith endswith"
).split():
    setattr(Message, _name, Message._refuse)


class OpenText(Message):
    """`before`, a traced integer, `after`."""

    number: Any
    before: str
    after: str

    @classmethod
    def of(cls, before: str, number: Any, after: str) -> OpenText:
        made = cls(f"{before}{number}{after}")
        made.before, made.number, made.after = before, number, after
        return made

    @property
    def form(self) -> str:
        return f"{self.before}…{self.after}"

    def number_in(self, text: str) -> int | None:
        """The number that would make it this text; None where none does."""
        inner = text[len(self.before) : len(text) - len(self.after)]
        if not (text.startswith(self.before) and text.endswith(self.after)) or len(text) < len(
            self.before + self.after
        ):
            return None
        return int(inner) if inner.lstrip("-").isdecimal() and str(int(inner)) == inner else None

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, str) or other is self:
            return other is self
        if isinstance(other, OpenText):
            return self.number == other.number if self.form == other.form else False
        wanted = self.number_in(other)
        return False if wanted is None else self.number == wanted

    def __ne__(self, other: object) -> Any:
        return torch.sym_not(self == other)

    __hash__ = str.__hash__

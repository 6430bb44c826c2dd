"""Text that a traced number or tensor is a part of: `str(n)`, `f"layer{n}"`, `"x".join(map(str, x.shape))`.

It reads like any text, with a symbol's name where the number will be, which is fine in a message. Where only whole
numbers are open in it, it is an `OpenText`: the numbers decide what it is equal to, and which key or attribute it names
(`choices.py`). Any other is a `Message`, and refuses all questions about what stands in it.

Functions of Python's own make plain text of such a text: `"%s-%s" % (n, m)`, `repr(x.shape)`. What they made is known
by the marks around each name, and is taken apart again as soon as rewritten code has it (`written`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from trueport.rewrite.running.runtime import RUNTIME_FUNCTIONS

_BEGIN, _END = "\x01", "\x02"
"""Around the name of a traced value in a text. No user writes them, and every terminal and encoding takes them."""
MARK = _BEGIN
UNKNOWN = _BEGIN + _END
"""Makes a text one of which nothing is known: a width or a precision was asked for."""
_MARKED = re.compile(f"{_BEGIN}([^{_END}]*){_END}")
_NUMBERS: dict[str, Any] = {}
"""The whole numbers of the present trace of which a text was made, by their names."""


def forget_numbers() -> None:
    """A trace ends."""
    _NUMBERS.clear()


def marked(value: Any, name: str, as_it_is: bool = True) -> str:
    """The name of a traced value in a text; `as_it_is` where just the digits of a whole number will stand there."""
    if MARK in name:  # it was asked for while a text is written
        return name
    if isinstance(value, torch.SymInt) and as_it_is:
        _NUMBERS[name] = value
        return f"{_BEGIN}{name}{_END}"
    return f"{_BEGIN}?{name}{_END}"


class Message(str):
    """Text in which a traced value stands by its name: good to be shown, and for nothing that depends on it."""

    def __new__(cls, text: str) -> Message:
        return super().__new__(cls, text if MARK in text else UNKNOWN + text)

    def __add__(self, other: str) -> str:
        return _taken_apart(str.__add__(self, other))

    def __radd__(self, other: str) -> str:
        return _taken_apart(str.__add__(other, self))

    def __format__(self, specification: str) -> str:
        return str(self) + (UNKNOWN if specification else "")

    def __bool__(self) -> bool:
        return True


_USED = "the text of a number that is being traced (a SymInt or SymFloat) is used for more than a message"


def _refuse(*_: Any, **__: Any) -> Any:
    raise TypeError(_USED)


_JOINING = ("format", "format_map", "join")
_FORMING = "capitalize casefold center expandtabs ljust lower rjust swapcase title upper zfill".split()
"""Methods of a text that make another one of it, which cannot be known."""


def _refuse_hash(*_: Any) -> int:
    """Python's own word for it is in the message: a function under a cache is then called below it (`caches.py`)."""
    raise TypeError(f"unhashable: {_USED}")


for _name in (
    "__len__ __iter__ __getitem__ __contains__ __eq__ __ne__ __lt__ __gt__ __le__ __ge__ __mul__ __rmul__"
).split() + [name for name in vars(str) if not name.startswith("_") and name not in (*_JOINING, *_FORMING)]:
    setattr(Message, _name, _refuse)
setattr(Message, "__hash__", _refuse_hash)  # noqa: B010


def _forming(name: str) -> Callable[..., Message]:
    method = getattr(str, name)
    return lambda text, *args: Message(UNKNOWN + method(str(text), *args))


for _name in _FORMING:
    setattr(Message, _name, _forming(_name))


class OpenText(Message):
    """Texts with a traced integer between each two of them."""

    texts: tuple[str, ...]
    numbers: tuple[Any, ...]

    @classmethod
    def of(cls, texts: tuple[str, ...], numbers: tuple[Any, ...]) -> OpenText:
        names = [marked(number, repr(number)) for number in numbers]
        made = cls(texts[0] + "".join(name + text for name, text in zip(names, texts[1:], strict=True)))
        made.texts, made.numbers = texts, numbers
        return made

    @property
    def form(self) -> str:
        return "…".join(self.texts)

    def numbers_in(self, text: str) -> tuple[int, ...] | None:
        """The numbers that would make it this text; None where none do."""
        found = re.fullmatch("(-?[0-9]+)".join(map(re.escape, self.texts)), text)
        if found is None or any(str(int(digits)) != digits for digits in found.groups()):
            return None
        return tuple(map(int, found.groups()))

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, str) or other is self:
            return other is self
        if not isinstance(other, Message):
            return _are_equal(self.numbers, self.numbers_in(other))
        if not isinstance(other, OpenText) or self.texts != other.texts:
            return _refuse()
        return _are_equal(self.numbers, other.numbers)

    def __ne__(self, other: object) -> Any:
        return torch.sym_not(self == other)

    def __hash__(self) -> int:
        """A dict that plain code looks into would find nothing: rewritten code asks for each key (`choices.py`)."""
        return _refuse_hash()


def _are_equal(numbers: tuple[Any, ...], others: tuple[Any, ...] | None) -> Any:
    return False if others is None else RUNTIME_FUNCTIONS.eq(numbers, others)


class _Writing:
    """Whether a function of Python's own is writing a text for the user's code."""

    now = False


def is_writing() -> bool:
    return _Writing.now


def written(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function that makes text gives: where traced values are a part of it, as a text that knows them."""
    before, _Writing.now = _Writing.now, True
    try:
        made = function(*args, **kwargs)
    finally:
        _Writing.now = before
    return _taken_apart(made) if type(made) is str and MARK in made else made


def _taken_apart(text: str) -> Message:
    """A text with marks in it. Numbers without anything between them, or with digits, could be told apart by nobody."""
    pieces = _MARKED.split(text)
    texts, names = tuple(pieces[::2]), pieces[1::2]
    known = all(name in _NUMBERS for name in names) and all(t and not re.search("[0-9]", t) for t in texts[1:-1])
    return OpenText.of(texts, tuple(_NUMBERS[name] for name in names)) if known else Message(text)


def method_of_text(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a plain text, which may be given a text with a traced number in it."""
    if function.__name__ in _JOINING:
        return lambda *args, **kwargs: written(function, *args, **kwargs)

    def asked(*args: Any, **kwargs: Any) -> Any:
        return _refuse() if any(isinstance(each, Message) for each in args) else function(*args, **kwargs)

    return asked

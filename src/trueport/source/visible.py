"""Text that others wrote (names of a foreign file, messages of a runtime) as it may be shown.

A terminal obeys what it is sent: an escape sequence clears the screen or writes the clipboard, a mark of direction
turns a line around, a line break makes a line of its own that looks like one of ours. So whatever is shown goes through
here, where the renderings of a report are put together, and not where each name is used.
"""

from __future__ import annotations


def visible(text: str, keep: str = "") -> str:
    """The text with each character that is not printable written as Python writes it: `\\x1b`, `\\u202e`, `\\n`.

    `keep` are characters to be left as they are: the line breaks of a text that is made of lines.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in keep else ascii(letter)[1:-1] for letter in text
    )  # a lone surrogate (a byte of a name that is no UTF-8) cannot even be encoded

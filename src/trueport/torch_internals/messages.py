"""What is known from the texts of torch's errors, where their types do not tell it."""

from __future__ import annotations

import re

TRACED_NUMBERS = ("SymInt", "SymFloat", "SymBool")
"""What messages call a number that is being traced."""
TRACED_VALUES = (*TRACED_NUMBERS, "FunctionalTensor")

_SYMBOL = re.compile(r"[us][0-9]+|zu?f[0-9]+")
_SYMBOL_OF_THE_RUN = re.compile(r"\bu\d+\b")
_NO_FAKE_KERNEL = re.compile(r"no fake impl registered for <CustomOpDef\((.+?)\)>")
_LAYOUT = re.compile(r"aten\.\w*?(sparse|nested)\w*")
_MEMORY = ("data is not allocated", "data pointer", "numpy()", ".numpy", "__array__", "storage of a")
_OBJECTS = ("data type 'object' not understood", "of type numpy.object_")


def names_a_symbol(text: str) -> bool:
    """Whether a traced number became text, by the name that torch gave its symbol."""
    return _SYMBOL.search(text) is not None


def names_a_size_of_the_run(text: str) -> bool:
    """Whether a symbol is named whose value only the run tells."""
    return _SYMBOL_OF_THE_RUN.search(text) is not None


def names_a_traced_value(text: str) -> bool:
    return any(word in text for word in TRACED_VALUES)


def reads_memory(text: str) -> bool:
    """Whether the memory of a tensor was asked for, which a traced one does not have."""
    return any(part in text for part in _MEMORY)


def is_of_object_arrays(text: str) -> bool:
    """Whether numpy held a traced number as an object."""
    return any(part in text for part in _OBJECTS)


def lacks_fake_kernel(text: str) -> bool:
    return "no fake impl" in text


def operator_without_fake_kernel(text: str) -> str | None:
    """The name of a user's operator that does not tell the sizes of its results."""
    found = _NO_FAKE_KERNEL.search(text)
    return None if found is None else found[1]


def layout_needed(text: str) -> tuple[str, str] | None:
    """An operator on sparse or nested tensors, and which of the two."""
    found = _LAYOUT.search(text)
    return None if found is None else (found[0], found[1])


def is_quantised(text: str) -> bool:
    """Whether an operator on quantised tensors is named."""
    return "quantized" in text

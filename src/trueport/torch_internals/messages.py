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
_DTYPES = re.compile(r"dtype|scalar type|same type|data type|Input type|not implemented for '|must be long", re.I)
_INDICES = re.compile(r"used as ind(?:ices|exes) must be|must be long, int|expected.* for index", re.I)
_SIZE_INDEXED = re.compile(r"with size (\d+)")
_AFTER_THE_MATTER = re.compile(r"\n\s*\n|\nException raised from|\nWhile executing")
_OF_EXPORTED_CODE = ("def ", "#", "File ", "%", "While executing")
_MEANINGS = {
    "Expected body_fn_output and carried_inputs to have same metadata": "what the loop carries changes its shape or its"
    " dtype from one round to the next",
    "Expected true_fn_output and false_fn_output to have same metadata": "the two arms differ in shape or dtype",
}
"""What torch.export's own words say of the user's code."""
_OBJECTS = ("data type 'object' not understood", "of type numpy.object_")


def names_a_symbol(text: str) -> bool:
    """Whether a traced number became text, by the name that torch gave its symbol."""
    return _SYMBOL.search(text) is not None


def names_a_size_of_the_run(text: str) -> bool:
    """Whether a symbol is named whose value only the run tells."""
    return _SYMBOL_OF_THE_RUN.search(text) is not None


def names_a_traced_value(text: str) -> bool:
    return any(word in text for word in TRACED_VALUES)


def names_none(text: str) -> bool:
    """Whether Python, or torch, says that None cannot do what was wanted of it: `'NoneType' object is not iterable`,
    `argument 'input' must be Tensor, not NoneType`."""
    return type(None).__name__ in text


def reads_memory(text: str) -> bool:
    """Whether the memory of a tensor was asked for, which a traced one does not have."""
    return any(part in text for part in _MEMORY)


def is_outside_the_modes(text: str) -> bool:
    """Whether a traced tensor met an operator where nothing traces: each thread has modes of its own."""
    return "Attempting to use FunctionalTensor on its own" in text


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


def first_paragraph(text: str) -> str:
    """What a message says; torch's longer ones continue with C++ frames and advice about itself."""
    return _AFTER_THE_MATTER.split(text.strip())[0]


def is_about_dtypes(text: str) -> bool:
    """Whether a tensor of another dtype was wanted."""
    return _DTYPES.search(text) is not None


def is_about_indices(text: str) -> bool:
    """Whether a tensor of whole numbers was wanted, to index with."""
    return _INDICES.search(text) is not None


def size_indexed(text: str) -> int | None:
    """How long the axis is that an index was too large for."""
    found = _SIZE_INDEXED.search(text)
    return None if found is None else int(found[1])


def numbers_named(text: str) -> list[int]:
    """The whole numbers of a message, among them the sizes that did not fit."""
    return [int(number) for number in re.findall(r"\d+", text)]


def refused_by_load(text: str) -> str:
    """What torch.load will not read: the named global. It explains `weights_only` at length after that."""
    for line in text.splitlines():
        if "GLOBAL" in line or "Unsupported" in line:
            return line.split(". Please use", 1)[0].strip()
    return text.strip().partition("\n")[0].rstrip()


def refused_by_export(failure: BaseException) -> str:
    """The sentence of an exception of torch.export that says something."""
    cause = failure
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines = [re.sub(r"\x1b\[\d*m", "", line).strip() for line in str(cause).splitlines()]
    said = [line for line in lines if line and not line.startswith(_OF_EXPORTED_CODE)]
    told_first = [line.split(": ", 1)[1] for line in said if line.startswith("Explanation: ")]
    words = (told_first or said or [""])[0]
    plainly = [meaning for start, meaning in _MEANINGS.items() if words.startswith(start)]
    return plainly[0] if plainly else f"{type(cause).__name__}: {words[:200]}"

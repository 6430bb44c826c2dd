"""An argument of another kind than it should be is a mistake in the call: told as such, never an error of Python's."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import trueport

MODEL, X = nn.Linear(4, 2), (torch.zeros(3, 4),)
CALLS = {
    "the model where the file should be": (lambda: trueport.verify(MODEL, X, "net.onnx"), "path is of type Linear"),
    "no file": (lambda: trueport.verify(None, MODEL, X), "it must be a text or a path"),
    "an opset as text": (lambda: trueport.export(MODEL, X, opset_version="20"), "it must be a whole number or None"),
    "a range for all": (lambda: trueport.export(MODEL, X, value_ranges=5), "value_ranges is of type int"),
    "constants": (lambda: trueport.check(MODEL, X, constants=5), "constants is of type int"),
    "a list by name": (lambda: trueport.export(MODEL, X, kwargs=[1]), "kwargs is of type list; it must be a dict"),
    "a word for a flag": (lambda: trueport.export(MODEL, X, thorough="no"), "it must be True or False"),
    "entries": (lambda: trueport.sweep([5], "out"), "entries is no list of Entry"),
}


@pytest.mark.parametrize("name", CALLS)
def test_it_is_told(name):
    call, said = CALLS[name]
    with pytest.raises(trueport.UsageError) as caught:
        call()
    assert said in caught.value.diagnostics[0].message
    assert caught.value.diagnostics[0].fix


def test_numbers_of_numpy_are_numbers():
    numpy = pytest.importorskip("numpy")
    program = trueport.export(MODEL, X, opset_version=numpy.int64(18), rtol=numpy.float32(1e-3), verbose=0)
    assert program.report.ok

"""Torch's own files, as they are met on the Python stack."""

from __future__ import annotations

import os

import torch

TORCH_FOLDER: str = torch.__path__[0]

SYMBOLIC_NUMBERS = os.path.join(TORCH_FOLDER, "__init__.py")
"""Where the methods of SymInt, SymFloat and SymBool stand: Python that wants a plain number calls one of them."""

HANDS_QUESTIONS_ON = (
    os.path.join("torch", "fx", "experimental") + os.sep,
    os.path.join("torch", "utils", "_sympy") + os.sep,
    os.path.join("torch", "utils", "_stats.py"),
    os.path.join("torch", "__init__.py"),
    os.path.join("torch", "_subclasses", "functional_tensor.py"),
    os.path.join("torch", "_tensor.py"),
    os.path.join("torch", "nn", "modules", "container.py"),
    os.path.join("torch", "overrides.py"),
    os.path.join("torch", "_compile.py"),
    os.path.join("torch", "_dynamo", "eval_frame.py"),
)
"""Parts of the paths of files whose frames only carry a question about a size: the one who asks is further out."""

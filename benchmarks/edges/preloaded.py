"""Torch's database of operators, imported once for all children."""

from benchmarks.ops.samples import database

database()

"""The program that a model becomes: a graph of regions with lexical scope.

`capture` makes it, `lower` translates it, `verify` runs it (`verify/replay.py`). It knows nothing of how it was traced.
"""

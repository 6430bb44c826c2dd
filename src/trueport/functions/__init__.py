"""Modules as ONNX functions: one function for each kind of block that the model is made of, where somebody asks for it.

asked.py    of which modules
blocks.py   which nodes are one call of a module
kinds.py    which of those calls are the same, but for what they are given
bodies.py   the functions, and the nodes that call them
stage.py    all of it, on the model that the passes left
"""

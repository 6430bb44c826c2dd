"""Passes that make the ONNX model smaller and quicker, and never another model.

    optimise(model, passes) -> Optimised

A pass is one class in one file. Its docstring numbers the cases, the code cites them, and what no case names stays as
it is. Every pass is linear in the number of nodes, goes into the bodies of `If` and `Loop`, and keeps the lines of the
user's source on what it leaves. Inputs, outputs and their names are never touched.
"""

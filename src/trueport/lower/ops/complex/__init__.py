"""Operators on complex numbers, which ONNX has none of: pairs of real ones."""

"""Operators on tensors without data, noted as the nodes of a graph; weights, symbols and aliases among them."""

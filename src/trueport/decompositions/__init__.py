"""Torch's functions, operators and layers written with others, where torch would freeze a free size.

Plain functions of tensors, as torch's own decompositions are: `capture` calls them while it traces, and nothing here
knows of a trace. What does (branches of `torch.cond`, numpy's arrays) registers itself from a room of capture's.
"""

"""Torch's functions, operators and layers written with others, where torch would freeze a free size.

Functions of `math` (`number_math.py`) and numpy's arrays (`arrays.py`) are written with torch's, too, where the numbers
are symbols. All are plain functions of tensors, as torch's own decompositions are: `capture` calls them while it
traces, and nothing here knows how. What has to (`torch.cond`, lists of open length) registers from capture.
"""

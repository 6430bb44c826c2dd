"""Branches as `If` regions, and everything else that rewritten code asks of a trace."""

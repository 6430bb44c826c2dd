"""Python control flow as calls that a trace can follow. Standard library only; a function is rewritten on demand."""

from trueport.rewrite.functions import Refused, Rewriting

__all__ = ["Refused", "Rewriting"]

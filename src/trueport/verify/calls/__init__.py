"""Every distinct call of a model by itself: `check_calls`."""

from trueport.verify.calls.check import check_calls
from trueport.verify.calls.result import CallsChecked

__all__ = ["CallsChecked", "check_calls"]

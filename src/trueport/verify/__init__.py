"""Proof that a written model does what eager does: a worker process, drawn inputs, and a comparison."""

from trueport.verify.check import check_model
from trueport.verify.options import Budget, Insight, Options
from trueport.verify.results import AgreedInput, CheckResult
from trueport.verify.runtime.sandbox import Limits, shared_worker, warm_up

__all__ = [
    "AgreedInput",
    "Budget",
    "CheckResult",
    "Insight",
    "Limits",
    "Options",
    "check_model",
    "shared_worker",
    "warm_up",
]

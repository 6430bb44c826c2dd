"""Proof that a written model does what eager does: a worker process, drawn inputs, and a comparison."""

from trueport.verify.check import check_model
from trueport.verify.results import AgreedInput, Budget, CheckResult
from trueport.verify.runtime.sandbox import Limits, shared_worker, warm_up

__all__ = ["AgreedInput", "Budget", "CheckResult", "Limits", "check_model", "shared_worker", "warm_up"]

"""`statistics`. On plain numbers the library's own are called, which are exact."""

from __future__ import annotations

import math
import statistics
from typing import Any

from trueport.capture.python.standing_for import any_traced, stands_for
from trueport.rewrite.ahead import rewritten


@stands_for(statistics.mean, when=any_traced, collects=True)
def mean(items: Any) -> Any:
    numbers = list(items)
    return sum(numbers) / len(numbers)


@stands_for(statistics.fmean, when=any_traced, collects=True)
def fmean(items: Any, weights: Any = None) -> Any:
    if weights is None:
        return mean(items)
    weights = list(weights)
    return sum([item * weight for item, weight in zip(items, weights, strict=True)]) / sum(weights)


@stands_for(statistics.variance, when=any_traced, collects=True)
def variance(items: Any, xbar: Any = None) -> Any:
    numbers = list(items)
    return _squares(numbers, xbar) / (len(numbers) - 1)


@stands_for(statistics.pvariance, when=any_traced, collects=True)
def pvariance(items: Any, mu: Any = None) -> Any:
    numbers = list(items)
    return _squares(numbers, mu) / len(numbers)


@stands_for(statistics.stdev, when=any_traced, collects=True)
def stdev(items: Any, xbar: Any = None) -> Any:
    return math.sqrt(variance(items, xbar))


@stands_for(statistics.pstdev, when=any_traced, collects=True)
def pstdev(items: Any, mu: Any = None) -> Any:
    return math.sqrt(pvariance(items, mu))


@rewritten
def _squares(numbers: Any, middle: Any) -> Any:
    """The sum of the squares of how far each is from the mean, or from another number."""
    centre = mean(numbers) if middle is None else middle
    return sum([(each - centre) * (each - centre) for each in numbers])

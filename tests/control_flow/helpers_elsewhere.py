"""Helper functions and modules of another file than the model's."""

from __future__ import annotations

import enum
import functools

import torch
from torch import nn

SCALE = 3.0


def scaled(x, limit=0.0, *, by=2.0):
    if x.sum() > limit:
        return x * by
    return x * SCALE


def accumulated(x):
    total = x.new_zeros(x.shape[1])
    for row in x:
        total = total * 0.5 + row
    return total


def shouted(function):
    """A decorator that keeps the function's name."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) + 1

    return wrapper


class Base(nn.Module):
    __offset = 7.0

    def forward(self, x):
        if x.sum() > 0:
            return x + self.__offset
        return self._down(x)

    def _down(self, x):
        return x - self.__offset


def pairs(items):
    """A generator of plain length."""
    for i in range(0, len(items), 2):
        yield items[i], items[i + 1]


def early(x):
    for _ in range(2):
        with torch.no_grad():
            if x.sum() > 5:
                return x * 10
        x = x + 1
    return x


class Mode(enum.Enum):
    UP = 1
    DOWN = 2


def moved(x, mode):
    """Decides by which object it is given, and by no tensor."""
    return x + 1 if mode is Mode.UP else x - 1


def moved_by_another(x, options):
    return moved(x, options["mode"])


class Mover:
    def __init__(self, mode):
        self.mode = mode

    def move(self, x):
        return x * 2 if self.mode is Mode.UP else x * 3


def or_zeros(x):
    return torch.zeros(3) if x is None else x

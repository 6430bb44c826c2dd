"""The models, one file per family. Each family is a list of `Model` called `MODELS`."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from benchmarks.mutants.cases import Model


@cache
def all_models() -> dict[str, Model]:
    found: dict[str, Model] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        for model in import_module(f"{__name__}.{module}").MODELS:
            assert model.name not in found, model.name
            found[model.name] = model
    return found

"""The shared cases (`../shared/cases`, or the folder in TRUEPORT_CASES) as subjects for the judge."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Literal

from benchmarks.compare import Tolerance
from benchmarks.judge import Inputs, Subject, eager_refuses

Suite = Literal["seeds", "reports"]
SUITES: tuple[Suite, ...] = ("seeds", "reports")
REPOSITORY = Path(__file__).resolve().parent.parent

CONTROL_FLOW = {
    "padding_loop_int": "for over range(a number that is an input)",
    "padding_loop_dyn_int": "for over range(a number that is an input)",
    "padding_loop_tensor": "for over range(tensor)",
    "if_sum": "if on a tensor",
    "if_sum_exactly_zero": "if on a tensor",
    "if_sum_gt0": "if on a tensor",
    "cf_user_torch_cond": "torch.cond written by the user",
    "cf_drop_full_mask": "if on mask.all()",
    "cf_builtin_max_of_tensors": "the builtin max compares tensors",
    "shp_patch_merging_odd": "if on the parity of two free sizes",
    "shp_longrope_factor_switch": "conditional expression on a free size",
    "shp_crop_larger_of_two": "if/elif on two free sizes",
    "loop_custom_rnn_over_time": "for over range(free size)",
    "loop_user_while_loop_hop": "while_loop written by the user",
    "loop_while_two_scalars": "while on a tensor",
    "loop_range_over_half_length": "while and if on a free size that shrinks",
    "loop_attention_decoder_until_stop": "while on a tensor, list appended in it",
    "dyn_resize_shorter_side": "builtin min and max of free sizes",
    "mut_cached_grid_rebuilt_on_size_change": "if on free sizes against a cached tensor's",
}
"""Cases that need a branch or a loop kept alive, and why. For the report only: nothing is judged differently."""

EITHER_GRAD_MODE = {"dyn_transformer_encoder"}
"""Cases whose note says that eager with grad and under no_grad differ and that either counts."""


@dataclass(frozen=True)
class Case:
    suite: Suite
    category: str
    source: str
    expect: Literal["export", "diagnose"]
    subject: Subject

    @property
    def name(self) -> str:
        return self.subject.name


def folder() -> Path:
    return Path(os.environ.get("TRUEPORT_CASES") or REPOSITORY.parent / "shared" / "cases")


def available() -> bool:
    return all((folder() / f"{suite}.py").is_file() for suite in SUITES)


def names(suite: Suite) -> list[str]:
    return [case.name for case in read(suite)]


def load_case(suite: Suite, name: str) -> Case:
    return next(case for case in read(suite, name) if case.name == name)


def read(suite: Suite, only: str | None = None) -> Iterator[Case]:
    """The cases of a file, one at a time; `only` spares building the models of all others."""
    return _seeds() if suite == "seeds" else _reports(only)


def _seeds() -> Iterator[Case]:
    module = _import("seeds")
    for name, model, args, dynamic_shapes, more in module.cases():
        calls: list[Inputs] = [(tuple(each), {}) for each in more]
        subject = Subject(name, model.eval(), (tuple(args), {}), calls, dynamic_shapes, str(module.__file__))
        yield Case("seeds", "seeds", "", "diagnose" if eager_refuses(subject) else "export", subject)


def _reports(only: str | None) -> Iterator[Case]:
    module = _import("reports")
    for found in module.cases(None if only is None else {only}):
        tolerance = Tolerance(found["rtol"], found["atol"]) if "rtol" in found else None
        subject = Subject(
            name=found["name"],
            model=found["model"],
            inputs=(found["args"], found["kwargs"]),
            more=[(tuple(args), dict(kwargs)) for args, kwargs in found["more"]],
            dynamic_shapes=found["dynamic_shapes"],
            own_files=str(module.__file__),
            tolerance=tolerance,
            stateful=found.get("stateful", False),
            either_grad_mode=found["name"] in EITHER_GRAD_MODE,
        )
        yield Case("reports", found["category"], found["source"], found["expect"], subject)


def _import(suite: Suite) -> ModuleType:
    """By path, and entered in `sys.modules` so that `inspect` and dataclasses find the user's file."""
    name = f"trueport_cases_{suite}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, folder() / f"{suite}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]

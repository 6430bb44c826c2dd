"""The options that `export` and `check` share, and what they ask for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.errors import UsageError
from trueport.load.formulas import names_in
from trueport.lower.runtimes import parse_target
from trueport.optimise.names import NAMES, chosen

if TYPE_CHECKING:
    import torch

    from trueport.load.targets import Target
    from trueport.zoo import Specimen

Command = TypeVar("Command", bound=Callable[..., Any])
Range = tuple[int | None, int | None] | str
_LEAST_MEMORY = 768 << 20
"""With less address space torch 2.13 could not be loaded."""


source_root_option = click.option(
    "--source-root", metavar="FOLDER",
    help="What the lines noted in FILE are relative to; else the folder with the pyproject.toml or .git.",
)  # fmt: skip


@dataclass(frozen=True)
class Request:
    """A model and the inputs to export it with, as `trueport.api` takes them."""

    model: torch.nn.Module
    args: tuple[Any, ...]
    options: Mapping[str, Any]
    """Keyword arguments that `export` and `check` both understand."""
    given: object
    """The model as the user's file has it: what is taken out of a wrapper is told."""


def model_options(command: Command) -> Command:
    """Add TARGET and the options that say which model, with which inputs, and how it is to be exported."""
    for option in reversed(
        [
            click.option("--opset", type=int, metavar="N", help="The ONNX opset to write."),
            click.option(
                "--target", "runtime", metavar="WHERE",
                help="Where the model will run (onnxruntime==1.17), which says the opset to write.",
            ),
            click.option(
                "--state", type=click.Choice(["frozen", "inputs-outputs"]),
                help="What becomes of buffers that forward writes; refused if there are any and nothing is said.",
            ),
            click.option(
                "--random", type=click.Choice(["onnx"]),
                help="Keep a model random that draws random numbers; refused if it does and nothing is said.",
            ),
            click.option(
                "--functions", is_flag=True,
                help="Make an ONNX function of each kind of module: layers that are alike are one body.",
            ),
            click.option("--no-optimise", is_flag=True, help="Write the graph as it is, without any pass over it."),
            click.option(
                "--passes", metavar="A,B",
                help=f"Run only these passes, or -A,-B: all but these. They are: {', '.join(NAMES)}.",
            ),
        ]
    ):  # fmt: skip
        command = option(command)
    return target_options(command)


def target_options(command: Command) -> Command:
    """Add TARGET and the options that say which model, with which inputs."""
    return click.argument("target")(input_options(command))


def input_options(command: Command) -> Command:
    """Add the options that say with which inputs and weights."""
    for option in reversed(
        [
            click.option(
                "-i", "--input", "inputs", multiple=True, metavar="SPEC",
                help="An input: x:2x3xHxW (capitals are free sizes), ids:BxS:i64@0..999, batch.image:BxTx6 (inside an "
                "argument), x=@file.npy. Repeatable.",
            ),
            click.option(
                "--dim", "dims", multiple=True, metavar="NAME=RANGE",
                help="The range of a free size (H=32..640, B=1.., S=..512), or its formula (T=P+S). Repeatable.",
            ),
            click.option("--weights", metavar="FILE", help="A state dict to load first: .safetensors, or .pt."),
            click.option(
                "--constants", metavar="A,B",
                help="Number arguments to fix in the model; otherwise they are inputs.",
            ),
            click.option("--debug", is_flag=True, help="Show tracebacks, and why traces began anew."),
        ]
    ):  # fmt: skip
        command = option(command)
    return command


def read_request(
    *,
    target: str,
    inputs: tuple[str, ...],
    dims: tuple[str, ...],
    weights: str | None,
    constants: str | None,
    opset: int | None = None,
    runtime: str | None = None,
    state: str | None = None,
    random: str | None = None,
    no_optimise: bool = False,
    passes: str | None = None,
    functions: bool = False,
) -> Request:
    """Load the model and make its inputs. Everything wrong with the request is raised as a UsageError."""
    ranges = parse_ranges(dims)
    if runtime is not None:
        parse_target(runtime)
    optimize = _passes(no_optimise, passes)
    refuse_too_little_memory()
    _refuse_missing(target, weights)
    from trueport.load.specs import parse_inputs
    from trueport.load.targets import load_target, load_weights
    from trueport.zoo import build, is_named

    named = build(target) if is_named(target) else None
    loaded = load_target(target) if named is None else _as_target(named, target)
    given = loaded.given
    if weights is not None:
        load_weights(loaded.model, weights)
        given = loaded.with_weights
    common = {
        "opset_version": opset,
        "target": runtime,
        "constants": _names(constants),
        "state": state,
        "random": random,
    }
    if optimize is not True:
        common["optimize"] = optimize
    if functions:
        common["functions"] = True
    if not inputs and (named is not None or loaded.example_inputs is not None):
        if ranges:
            source = "example_inputs(), whose sizes have no names" if named is None else "the name of the model alone"
            raise usage_error(
                f"--dim names {_listed(ranges)}, but the inputs come from {source}",
                fix="give the inputs with -i, as in -i x:BxS",
            )
        if named is not None:
            told = {"kwargs": named.kwargs, "dynamic_shapes": named.dynamic_shapes}
            return Request(loaded.model, named.args, {**common, **told}, given)
        args, kwargs = loaded.example_inputs or ((), {})
        return Request(loaded.model, args, {**common, "kwargs": kwargs}, given)
    parsed = parse_inputs(inputs, ranges, loaded.model)
    return Request(
        loaded.model,
        parsed.args,
        {
            **common,
            "kwargs": parsed.kwargs,
            "dynamic_shapes": parsed.dynamic_shapes,
            "value_ranges": parsed.value_ranges,
        },
        given,
    )


def _as_target(named: Specimen, target: str) -> Target:
    from trueport.load.targets import Target

    return Target(named.model, target, named.model)


def _passes(no_optimise: bool, passes: str | None) -> bool | tuple[str, ...]:
    """As `trueport.api` takes it: True for all."""
    if no_optimise and passes is not None:
        raise usage_error(f"--no-optimise runs no pass, and --passes {passes} some", fix="give one of the two")
    return not no_optimise if passes is None else chosen(passes)


def _refuse_missing(target: str, weights: str | None) -> None:
    """What needs no torch to be seen."""
    file = re.match(r"(.+?\.py)(?::|$)", target, flags=re.DOTALL)
    for path in (file[1] if file else None, weights or None):
        if path is not None and not Path(path).is_file():
            raise usage_error(f"there is no file {path}", fix="name one that is there, from the current folder")


def refuse_too_little_memory() -> None:
    """Below some limit torch does not raise: its libraries end the process while they are being loaded."""
    try:
        import resource
    except ImportError:  # not on this system
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < _LEAST_MEMORY:
        raise usage_error(
            f"this process may use {limit >> 20} MB of memory, and torch alone takes {_LEAST_MEMORY >> 20} MB",
            fix="raise the limit: `ulimit -v unlimited`",
        )


def parse_ranges(dims: Iterable[str]) -> dict[str, Range]:
    """`H=32..640` as {"H": (32, 640)}; an end that is left out is open. `T=P+S` as {"T": "P+S"}."""
    ranges: dict[str, Range] = {}
    for text in dims:
        name, _, said = (part.strip() for part in text.partition("="))
        match = re.fullmatch(r"(\d*)\s*\.\.\s*(\d*)", said)
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or (match is None and not names_in(said)):
            raise usage_error(
                f"--dim {text} is neither a range nor a formula", fix="write it as H=32..640, H=1.., H=..640 or H=2*N"
            )
        if name in ranges:
            raise usage_error(f"--dim says twice what {name} is", fix=f"keep one --dim {name}=...")
        ranges[name] = said if match is None else _range(text, name, match)
    return ranges


def _range(text: str, name: str, match: re.Match[str]) -> Range:
    low, high = (int(end) if end else None for end in match.groups())
    if low is not None and high is not None and low > high:
        raise usage_error(f"--dim {text} is empty: {low} is more than {high}", fix=f"--dim {name}={high}..{low}")
    return low, high


def as_meant(path: str, start: Path) -> str:
    """A path of the command line, once the model's file is imported: that may have changed the working folder."""
    return path if Path.cwd() == start else str(start / path)


def usage_error(message: str, *, fix: str) -> UsageError:
    return UsageError([UsageFault(message=message, fix=fix)])


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)

"""`trueport generate export`: a model that writes one token after the other, with its cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trueport.cli.outcome import reader_may_leave, told_plainly
from trueport.cli.request import as_meant
from trueport.cli.working import working, working_options


@click.group()
def generate() -> None:
    """Models of transformers that generate: export them with their cache."""


@generate.command()
@click.argument("target")
@click.option("-o", "--output", required=True, metavar="FOLDER", help="Where to write the graphs and settings.")
@click.option(
    "--verify/--no-verify", default=True, help="Compare the graphs, and the tokens they generate, with eager."
)
@click.option("--tokens", type=click.IntRange(min=1), default=32, show_default=True, help="How many tokens to compare.")
@click.option("--overwrite", "--force", is_flag=True, help="Replace the folder if it is not empty.")
@click.option(
    "--dtype", type=click.Choice(["auto", "float32", "float16", "bfloat16"]), default="auto", show_default=True,
    help="Read the weights of a folder as this; auto: as stored.",
)  # fmt: skip
@click.option(
    "--lora", multiple=True, metavar="[NAME=]FOLDER",
    help="An adapter that peft wrote: its weights become inputs, and NAME.onnx_adapter. May be given again.",
)  # fmt: skip
@click.option("--opset", type=int, metavar="N", help="The ONNX opset to write.")
@click.option("--seed", type=int, default=0, help="Of the inputs and prompts that are drawn.")
@click.option("--debug", is_flag=True, help="Show tracebacks, and why traces began anew.")
@working_options
def export(
    target: str,
    output: str,
    verify: bool,
    tokens: int,
    overwrite: bool,
    dtype: str,
    lora: tuple[str, ...],
    opset: int | None,
    seed: int,
    debug: bool,
    quiet: bool,
    timeout: float | None,
) -> None:
    """Export TARGET for generation, and compare the tokens with those of generate().

    TARGET is a local folder with config.json and safetensors, or file.py:name as for `trueport export`.

    \b
      trueport generate export ./smollm -o out/
    """
    with told_plainly(debug):
        start = Path.cwd()
        with working(f"exporting {target}", quiet, timeout):
            from trueport.generation import export as run

            model, given = _model(target)
            done = run(
                model,
                as_meant(output, start),
                inputs=given,
                lora=_adapters(lora, start),
                dtype=dtype,
                opset_version=opset,
                verify=verify,
                overwrite=overwrite,
                tokens=tokens,
                seed=seed,
            )
        with reader_may_leave():
            click.echo("\n".join(done.lines()))


def _model(target: str) -> tuple[object, dict[str, Any] | None]:
    """What to export, and what `generate()` is given where the file says so (`example_inputs`)."""
    if Path(target).is_dir() or not (":" in target or target.endswith(".py")):
        return target, None
    from trueport.load.targets import load_target

    found = load_target(target)
    return found.model, None if found.example_inputs is None else found.example_inputs[1]


def _adapters(given: tuple[str, ...], start: Path) -> dict[str, str] | None:
    """Folders by the names of their adapters; one without a name is called as peft calls it."""
    named = (each.rpartition("=") for each in given)
    return {name or "default": as_meant(folder, start) for name, _, folder in named} or None

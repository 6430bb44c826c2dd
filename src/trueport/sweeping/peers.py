"""`python -m trueport.sweeping.peers dynamo OUT TARGET -i …`: torch's own exporters on the same model and inputs."""

from __future__ import annotations

import sys
from typing import Any

import click

from trueport.cli.request import read_request, target_options

PEERS = {"dynamo": True, "torchscript": False}
"""By name, the argument `dynamo` of `torch.onnx.export`."""


@click.command()
@click.argument("peer", type=click.Choice(list(PEERS)))
@click.argument("output")
@target_options
def main(peer: str, output: str, debug: bool, **options: Any) -> None:
    """Write OUTPUT by another exporter. What it raises is its answer."""
    request = read_request(**options)
    import torch

    given: dict[str, Any] = {"kwargs": request.options.get("kwargs"), "dynamo": PEERS[peer], "verbose": False}
    if PEERS[peer]:
        given["dynamic_shapes"] = request.options.get("dynamic_shapes")
    torch.onnx.export(request.model.eval(), request.args, output, **given)


if __name__ == "__main__":
    sys.exit(main())

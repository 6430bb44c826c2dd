"""An export imports only what it needs, and leaves torch's compiler to whoever wants it."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from trueport.torch_internals.without_dynamo import compiler_is_loaded, nothing_to_disable

NOT_NEEDED = (
    "IPython",
    "hypothesis",
    "jinja2",
    "matplotlib",
    "networkx",
    "onnxruntime",
    "onnxscript",
    "rich",
    "scipy",
    "torch._dynamo",
    "torch._export",
    "torch._functorch.aot_autograd",
    "torch._inductor",
    "torch.distributed.fsdp",
    "torch.distributed.tensor",
    "torch.export._trace",
    "torch.onnx",
    "torchvision",
    "transformers",
    "trueport.cli",
    "trueport.fix",
    "trueport.generation",
)
"""Each takes from 10 ms to a second to import. The runtime is imported by the worker."""

MODEL = """
import sys
import torch
from torch import nn
import trueport

def net():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).eval()

def export(model, x=torch.ones(2, 4), **options):
    report = trueport.export(model, (x,), **options).report
    assert report.verified, report
"""


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", MODEL + program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


NORMALISED = """
def wide():
    return nn.Sequential(nn.LayerNorm(1024), nn.Linear(1024, 1024)).eval()

def picture():
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).eval()
"""
"""Of these some calls are made on tensors without memory: to plan the check, and to join a weight with another."""


@pytest.mark.parametrize(
    "given",
    [
        "net()",
        "net(), dynamic_shapes=({0: 'N'},)",
        "wide(), torch.ones(64, 1024), dynamic_shapes=({0: 'N'},)",
        "picture(), torch.ones(2, 1, 8, 8), dynamic_shapes=({0: 'N'},)",
    ],
    ids=["fixed", "free", "wide", "picture"],
)
def test_an_export_imports_none_of_these(given: str) -> None:
    told = run(f"{NORMALISED}\nbefore = set(sys.modules)\nexport({given})\nprint(*(set(sys.modules) - before))")
    loaded = told.split()
    assert "trueport.lower.ops.unary" in loaded  # it was an export
    unneeded = [name for name in loaded if any(name == one or name.startswith(f"{one}.") for one in NOT_NEEDED)]
    assert not unneeded


COMPILES = """
class Branch(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

def compiled():
    seen = []
    def backend(graph, inputs):
        seen.append(graph)
        return graph
    torch._dynamo.reset()
    torch.compile(net(), backend=backend, fullgraph=True)(torch.ones(2, 4))
    assert len(seen) == 1
    x = torch.ones(3)
    assert torch.equal(torch.compile(Branch(), backend="eager")(x), x + 1)
    torch.export.export(Branch(), (x,))
"""


@pytest.mark.parametrize(
    "order",
    [
        "export(net()); assert 'torch._dynamo' not in sys.modules; compiled(); export(net()); compiled()",
        "compiled(); export(net()); compiled()",
        "export(Branch()); compiled()",  # torch.cond compiles, in the eager run of the export
    ],
    ids=["before", "between", "inside"],
)
def test_who_compiles_in_the_same_process_finds_torch_as_it_was(order: str) -> None:
    run(COMPILES + order + "\nassert 'getattr' not in vars(torch._compile)\nassert len(sys.meta_path) < 12")


def test_the_compiler_is_set_aside_also_where_it_is_imported_on_the_way() -> None:
    """A run of the user's model may be the first to import it."""
    run(
        "from trueport.torch_internals.eager_modes import without_compiler\n"
        "with without_compiler():\n"
        "    import torch._dynamo\n"
        "    assert torch._dynamo.eval_frame._stance.stance == 'force_eager'\n"
        "assert torch._dynamo.eval_frame._stance.stance == 'default'\n"
    )


def test_functions_that_disable_the_compiler_run_and_remember_nothing() -> None:
    def inside(x: int) -> int:
        return x + 1

    function = torch._disable_dynamo(inside)
    with nothing_to_disable():
        assert function(1) == 2
    assert compiler_is_loaded() or not hasattr(inside, "__dynamo_disable")
    assert "getattr" not in vars(torch._compile)

"""What has no form in torch's words is told at its line, and nothing is offered."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from trueport.capture.trace import capture
from trueport.fix.portable.portable import PortableResult, deciding_functions, look, make_portable, written
from trueport.fix.portable.writing import PortableStyle
from trueport.load.request import make_job
from trueport.lower.table import is_leaf

Write = Callable[[str], torch.nn.Module]


@pytest.fixture
def net(tmp_path: Path) -> Write:
    """A model whose forward has this body, in a file of its own; the first line of the body is line 7."""

    def make(body: str) -> torch.nn.Module:
        file = tmp_path / "user_model.py"
        head = "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n"
        file.write_text(head + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8) + "\n")
        spec = importlib.util.spec_from_file_location(f"user_model_{id(file)}", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        made: torch.nn.Module = module.Net().eval()
        return made

    return make


def attempt(model: torch.nn.Module, sizes: object = None) -> PortableResult:
    """The text in the plain style, not tried with torch."""
    job = make_job(model, (torch.ones(3, 4),), dynamic_shapes=sizes)
    functions = deciding_functions(capture(job, is_leaf))
    return written(functions, look(job, functions), PortableStyle())


@pytest.mark.parametrize(
    ("body", "line", "why"),
    [
        (
            """
            out = []
            if x.sum() > 0:
                out.append(x)
            else:
                out.append(-x)
            return torch.cat(out)
            """,
            9,
            "grows a list",
        ),
        (
            """
            for row in x:
                if row.sum() > 0:
                    return row
            return x[0]
            """,
            7,
            "returns from inside a loop",
        ),
        (
            """
            if x.sum() > 0:
                y, z = x, None
            else:
                y, z = -x, x
            if z is not None:
                y = y + z
            return y
            """,
            11,
            "`z is not None` is no comparison that a tensor can make",
        ),
        (
            """
            while x.sum() < 1e3:
                x = x.abs() + 1
                y = x * 2
            return y
            """,
            7,
            "`y` has no value before the loop",
        ),
    ],
    ids=["list in an arm", "return in a loop", "None in an arm", "no value before the loop"],
)
def test_the_line_and_the_reason(net: Write, body: str, line: int, why: str) -> None:
    model = net(body)
    found = attempt(model, ({0: torch.export.Dim.DYNAMIC},))
    assert not found.changes
    (finding, *_) = found.diagnostics
    assert finding.code == "TP108"
    assert finding.where is not None
    assert finding.where.line == line
    assert why in finding.message


def test_a_loop_whose_tensor_grows_is_refused_by_torch_and_not_offered(net: Write) -> None:
    model = net(
        """
        out = x
        while out.shape[0] < 9 and x.sum() != 0:
            out = torch.cat([out, x])
        return out
        """
    )
    found = make_portable(make_job(model, (torch.ones(3, 4),)), is_leaf)
    assert not found.changes
    (finding,) = found.diagnostics
    assert finding.where is not None
    assert finding.where.line == 8
    assert "changes its shape or its dtype from one round to the next" in finding.message


def test_a_model_that_decides_nothing_is_left_alone(net: Write) -> None:
    found = make_portable(make_job(net("return x * 2"), (torch.ones(3, 4),)), is_leaf)
    assert found == PortableResult()

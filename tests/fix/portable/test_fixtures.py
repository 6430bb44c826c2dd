"""Each form of branch and loop: the text that `fix --portable` writes for it, which torch itself exports faithfully.

`NAME_in.py` is the user's file and `NAME_out.py` the same after the fix. TRUEPORT_SNAPSHOTS=write writes the second.
"""

from __future__ import annotations

import copy
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from trueport.fix.portable import portable
from trueport.fix.portable.writing import PortableStyle
from trueport.load.request import make_job
from trueport.lower.table import is_leaf

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = sorted(file.name.removesuffix("_in.py") for file in FIXTURES.glob("*_in.py"))
STYLES = {"nested": PortableStyle(flat=True)}
"""Where torch.onnx does not take the plain form, the one that `make_portable` comes to by trying."""


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"portable_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # torch looks a function's globals up there
    torch.manual_seed(0)
    spec.loader.exec_module(module)
    return module


def model(module: ModuleType) -> torch.nn.Module:
    torch.manual_seed(1)
    return module.Net().eval()


@pytest.mark.parametrize("name", NAMES)
def test_the_text(name: str) -> None:
    """Found, seen in eager and written anew; not tried, which takes seconds (`test_whole_way.py`)."""
    module = load(FIXTURES / f"{name}_in.py")
    job = make_job(model(module), module.INPUTS[0], dynamic_shapes=module.SIZES)
    functions = portable.deciding_functions(portable.capture(job, is_leaf))
    written = portable.written(functions, portable.look(job, functions), STYLES.get(name, PortableStyle()))
    assert not written.diagnostics
    (change,) = written.changes
    out = FIXTURES / f"{name}_out.py"
    if os.environ.get("TRUEPORT_SNAPSHOTS") == "write":
        out.write_text(change.after.text)
    assert change.after.text == out.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_torch_exports_it_and_it_is_the_same(name: str) -> None:
    before, after = load(FIXTURES / f"{name}_in.py"), load(FIXTURES / f"{name}_out.py")
    old, new = model(before), model(after)
    new.load_state_dict(old.state_dict())
    with torch.no_grad():
        exported = torch.export.export(new, copy.deepcopy(after.INPUTS[0]), dynamic_shapes=after.SIZES).module()
        for inputs in before.INPUTS:
            expected = old(*copy.deepcopy(inputs))
            torch.testing.assert_close(exported(*copy.deepcopy(inputs)), expected)


@pytest.mark.parametrize("name", ["branch", "ternary"])
def test_torch_does_not_export_what_was_there_before(name: str) -> None:
    """So that there is something to fix: either torch refuses, or the graph has one arm only."""
    module = load(FIXTURES / f"{name}_in.py")
    with pytest.raises(Exception, match=r"data-dependent|guard|constraint|Constraint"):
        torch.export.export(model(module), module.INPUTS[0], dynamic_shapes=module.SIZES)

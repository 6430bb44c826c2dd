"""The fixture `trueport` in the tests of others: it fails with the report, and costs nothing unless asked for."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PROJECT = Path(__file__).parents[2]
INSTALLED = any(entry.value == "trueport.pytest_plugin" for entry in entry_points(group="pytest11"))
"""Whether pytest finds the plugin by itself: where trueport is installed, and not only on the path."""

MODEL = """
    import pytest, torch
    from torch import nn

    class Net(nn.Module):
        def forward(self, x):
            return x.relu() + 1

    class Frozen(nn.Module):
        def forward(self, x):
            return x * float(x.numpy().sum())
"""


TESTS = """
    def test_good(trueport):
        report = trueport.check(Net(), (torch.randn(2, 3),), free={"x": [0]})
        assert report.verified and [size.minimum for size in report.free_sizes] == [0]

    def test_by_position(trueport):
        assert trueport.check(Net(), (torch.randn(2, 3),), free=({0, 1},), verify=False).free_sizes[1:]

    def test_bad(trueport):
        trueport.check(Frozen(), (torch.randn(2, 3),))

    def test_wrong_call(trueport):
        trueport.check(Net(), (torch.randn(2, 3),), free={"x": [0]}, dynamic_shapes={})

    def test_files(trueport, tmp_path):
        x = torch.randn(2, 3)
        program = trueport.export(Net(), (x,), tmp_path / "net.onnx", verify=False)
        assert torch.equal(program(x), Net()(x))
        trueport.verify(tmp_path / "net.onnx", Net(), (x,))
        trueport.verify(tmp_path / "net.onnx", nn.Sigmoid(), (x,))

    def test_refused(trueport, tmp_path):
        trueport.export(Frozen(), (torch.randn(2, 3),), tmp_path / "net.onnx")
"""


def test_the_fixture_passes_what_is_faithful_and_fails_with_the_report(pytester: pytest.Pytester) -> None:
    """In a process of its own, once: torch cannot be imported a second time, as pytester would have it."""
    pytester.makepyfile(test_ours=MODEL + TESTS)
    for file in ("model.py", "test_export.py"):
        (pytester.path / file).write_text((PROJECT / "examples" / "ci" / file).read_text())
    plugin = [] if INSTALLED else ["-p", "trueport.pytest_plugin"]
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--trueport-reports", "pages", *plugin)
    done.assert_outcomes(passed=3, failed=4)
    done.stdout.fnmatch_lines(["*test_export.py .*", "*test_ours.py ..FFFF*"])
    done.stdout.fnmatch_lines(["refused Frozen: 1 error", "error?TP204?:*", "*x * float(x.numpy().sum())*"])
    done.stdout.fnmatch_lines(["*free is another word for dynamic_shapes*"])
    done.stdout.fnmatch_lines(["unfaithful *net.onnx is not Sigmoid", "error?TP805?*"])
    done.stdout.no_fnmatch_line("*pytest_plugin.py:*: Failed")
    done.stdout.no_fnmatch_line("*torch.__trace*")
    pages = sorted(path.name for path in (pytester.path / "pages").iterdir())
    assert pages == sorted(
        "test_export.py-test_the_export_is_faithful.html test_ours.py-test_bad.html test_ours.py-test_by_position.html "
        "test_ours.py-test_files-1.html test_ours.py-test_files-2.html test_ours.py-test_files.html "
        "test_ours.py-test_good.html test_ours.py-test_refused.html".split()
    )


def test_a_run_that_does_not_ask_imports_nothing() -> None:
    heavy = "print({'torch', 'numpy', 'onnx_ir', 'jinja2', 'rich', 'trueport.api'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, trueport.pytest_plugin; {heavy}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "set()\n"


def test_the_plugin_is_offered_to_pytest() -> None:
    offered = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert offered == {"trueport": "trueport.pytest_plugin"}

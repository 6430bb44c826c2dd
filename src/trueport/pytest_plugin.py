"""The pytest plugin: a test asks for the fixture `trueport`, and fails with the report where an export is not faithful.

    def test_export(trueport):
        trueport.check(Net(), (torch.randn(2, 3),), free={"x": {0: "batch"}})

Loaded in every run of pytest where trueport is installed, so it imports nothing until a test asks.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from trueport.program import Program
    from trueport.report import Report

AnyPath = str | os.PathLike[str]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("trueport").addoption(
        "--trueport-reports",
        metavar="FOLDER",
        help="Save the report of each check of the `trueport` fixture there, as a page named after its test.",
    )


class ExportChecks:
    """What the fixture `trueport` gives."""

    def __init__(self, test: str, reports: Path | None) -> None:
        self._test = test
        self._reports = reports
        self._saved = 0

    def check(self, model: object, args: Any = (), *, free: Any = None, **options: Any) -> Report:
        """Export a model without writing it, compare it with eager, and fail the test unless it is faithful.

        `free` says which axes of the inputs may have other sizes: `{"x": {0: "batch"}}` with their names, or
        `{"x": [0, 2]}`. It is another word for `dynamic_shapes`. The other options are those of `trueport.export`.
        """
        __tracebackhide__ = True
        from trueport.api import check

        with _without_traces():
            report = check(model, args, **_with_free(free, options))
        return self._judged(report)

    def export(self, model: object, args: Any, f: AnyPath, *, free: Any = None, **options: Any) -> Program:
        """The same, and write the model to `f`. Returns the Program, which can be called."""
        __tracebackhide__ = True
        from trueport.api import export
        from trueport.errors import ExportError, UsageError
        from trueport.report import Report

        try:
            with _without_traces():
                program = export(model, args, f, **_with_free(free, options))
        except UsageError:
            raise
        except ExportError as refused:
            self._judged(Report(model=type(model).__name__, diagnostics=refused.diagnostics))
            raise
        self._judged(program.report)
        return program

    def verify(self, path: AnyPath, model: object, args: Any = (), *, free: Any = None, **options: Any) -> Report:
        """Compare an ONNX file, whoever exported it, with its model, and fail the test where they differ."""
        __tracebackhide__ = True
        from trueport.api import verify

        with _without_traces():
            report = verify(path, model, args, **_with_free(free, options))
        return self._judged(report)

    def _judged(self, report: Report) -> Report:
        __tracebackhide__ = True
        if self._reports is not None:
            self._reports.mkdir(parents=True, exist_ok=True)
            number = f"-{self._saved}" if self._saved else ""
            report.save(self._reports / f"{self._test}{number}.html")
            self._saved += 1
        if not report.ok:
            pytest.fail(report.text(), pytrace=False)
        return report


@pytest.fixture(name="trueport")
def trueport_fixture(request: pytest.FixtureRequest) -> ExportChecks:
    """Check exports to ONNX: `trueport.check(model, args, free={"x": {0: "batch"}})`, and `.export`, `.verify`."""
    folder = request.config.getoption("--trueport-reports")
    test = re.sub(r"[^\w.-]+", "-", request.node.nodeid).strip("-")
    return ExportChecks(test, None if folder is None else Path(folder).absolute())


@contextlib.contextmanager
def _without_traces() -> Iterator[None]:
    """torch's own record of a trace, which pytest would print, line after empty line, below the report."""
    record = logging.getLogger("torch.__trace")
    before, record.disabled = record.disabled, True
    try:
        yield
    finally:
        record.disabled = before


def _with_free(free: Any, options: dict[str, Any]) -> dict[str, Any]:
    if free is None:
        return options
    if "dynamic_shapes" in options:
        raise TypeError("free is another word for dynamic_shapes: give one of them")
    if isinstance(free, Mapping):
        return {**options, "dynamic_shapes": {name: _axes(axes) for name, axes in free.items()}}
    return {**options, "dynamic_shapes": tuple(_axes(axes) for axes in free)}


def _axes(axes: Any) -> Any:
    """Axes by number become sizes of their own; all else is as `dynamic_shapes` takes it."""
    if isinstance(axes, set | frozenset | list | tuple) and all(type(axis) is int for axis in axes):
        from torch.export import Dim

        return dict.fromkeys(sorted(axes), Dim.DYNAMIC)
    return axes

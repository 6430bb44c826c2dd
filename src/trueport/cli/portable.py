"""`trueport fix --portable`: branches and loops so that torch's own exporters take them, too."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from trueport.cli.outcome import Exit, show_findings
from trueport.cli.request import read_request
from trueport.cli.working import working
from trueport.errors import ExportError
from trueport.fix.edit import unified_diff
from trueport.fix.writing import write_changes

if TYPE_CHECKING:
    from trueport.fix.portable.portable import PortableResult


_ABOUT_INPUTS = ("kwargs", "dynamic_shapes", "constants", "value_ranges")
"""Of what may be asked of an export, what matters to the source."""


def fix_portable(target: str, diff: bool, quiet: bool, timeout: float | None, **options: Any) -> Exit:
    """Find the portable form of TARGET, and show or write it."""
    with working(f"writing {target} for torch's own exporters", quiet, timeout):
        found = _find(target, options)
    if found.diagnostics:
        show_findings(found.diagnostics, Console())
        return Exit.FINDINGS
    if not found.changes:
        tried = f": torch's own exporters take it as it is, equal on {found.inputs} inputs" if found.inputs else ""
        click.echo(f"nothing to do{tried or ': no value and no free size decides anything in this model'}")
        return Exit.FAITHFUL
    if diff:
        click.echo(unified_diff(found.changes), nl=False)
    else:
        for path in write_changes(found.changes):
            here = Path.cwd()
            click.echo(f"written: {path.relative_to(here) if path.is_relative_to(here) else path}", err=True)
    lines = ", ".join(f"{Path(where.file).name}:{where.line}" for where in found.rewritten)
    click.echo(f"written anew: {lines}", err=True)
    click.echo(
        f"tried: torch.export and torch.onnx.export(dynamo=True) take it, and the file is equal to your model as it was"
        f" on {found.inputs} inputs",
        err=True,
    )
    return Exit.FINDINGS if diff else Exit.FAITHFUL


def _find(target: str, options: dict[str, Any]) -> PortableResult:
    if importlib.util.find_spec("onnxscript") is None:
        from trueport.load.faults import usage_error

        raise usage_error(
            "torch.onnx.export writes with onnxscript, which is not installed",
            fix="pip install 'trueport[onnxscript]'",
        )
    request = read_request(target=target, **options)
    from trueport.examine import examine
    from trueport.fix.portable.portable import make_portable
    from trueport.load.request import make_job
    from trueport.lower.table import is_leaf

    asked = {name: value for name, value in request.options.items() if name in _ABOUT_INPUTS}
    job = make_job(request.model, request.args, **asked)
    examined = examine(job)
    if any(finding.is_error for finding in examined.diagnostics):
        raise ExportError(examined.diagnostics)
    return make_portable(job, is_leaf)

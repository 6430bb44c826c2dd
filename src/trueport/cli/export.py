"""`trueport export`: write the model, or say why not."""

from __future__ import annotations

from typing import Any

import click

from trueport.cli.outcome import show, told_plainly, working
from trueport.cli.request import model_options, read_request, refuse_unwritable
from trueport.cli.saving import refuse_report, report_option, save_report
from trueport.errors import ExportError, UsageError
from trueport.report import Report


@click.command()
@model_options
@click.option("-o", "--output", required=True, metavar="FILE", help="Where to write the ONNX model.")
@click.option("--no-verify", is_flag=True, help="Do not compare with eager. The report says so.")
@click.option("--overwrite", "--force", is_flag=True, help="Replace the output file if it exists.")
@click.option("--external-data", is_flag=True, default=None, help="Keep the weights in a file of their own.")
@report_option
def export(
    target: str,
    output: str,
    no_verify: bool,
    overwrite: bool,
    external_data: bool | None,
    report_path: str | None,
    debug: bool,
    **options: Any,
) -> None:
    """Export TARGET to ONNX, and check it against eager PyTorch.

    TARGET is file.py:name or package.module:name; the name is a module, a class, or a function that makes one.

    \b
      trueport export model.py:Net -i x:Nx3xHxW --dim H=32..640 -o net.onnx
    """
    with told_plainly(debug):
        refuse_unwritable(output, overwrite)
        refuse_report(report_path)
        try:
            with working(f"exporting {target}"):
                request = read_request(target=target, **options)
                from trueport.api import export as run

                program = run(
                    request.model,
                    request.args,
                    output,
                    verify=not no_verify,
                    external_data=external_data,
                    overwrite=overwrite,
                    **request.options,
                )
        except UsageError:
            raise
        except ExportError as refused:
            save_report(Report(model=target, diagnostics=refused.diagnostics), report_path)
            raise
        save_report(program.report, report_path)
        show(program.report)

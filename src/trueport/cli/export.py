"""`trueport export`: write the model, or say why not."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import click

from trueport.cli.checking import Checking, checking_options
from trueport.cli.outcome import told_plainly
from trueport.cli.request import as_meant, model_options, read_request, source_root_option
from trueport.cli.showing import Showing, mention_fix, showing_options
from trueport.cli.working import working, working_options
from trueport.errors import ExportError, UsageError
from trueport.load.outputs import refuse_output
from trueport.report import Report
from trueport.report.versions import installed_versions


@click.command()
@model_options
@click.option("-o", "--output", required=True, metavar="FILE", help="Where to write the ONNX model.")
@click.option("--verify/--no-verify", default=True, help="Compare with eager, or do not; the report says so.")
@click.option("--overwrite", "--force", is_flag=True, help="Replace the output file if it exists.")
@click.option("--external-data", is_flag=True, default=None, help="Keep the weights in a file of their own.")
@click.option(
    "--proof/--no-proof", default=True, help="Write FILE.proof.json beside the model: what was compared, and how."
)
@source_root_option
@click.option(
    "--source/--no-source", default=True,
    help="Note in FILE from which line each node comes, or leave it out of a file that goes to others.",
)  # fmt: skip
@click.option("--show-rewritten", is_flag=True, help="Print the functions whose branches and loops were kept alive.")
@checking_options
@working_options
@showing_options
def export(
    target: str,
    output: str,
    verify: bool,
    overwrite: bool,
    external_data: bool | None,
    proof: bool,
    source_root: str | None,
    source: bool,
    show_rewritten: bool,
    debug: bool,
    quiet: bool,
    timeout: float | None,
    **options: Any,
) -> None:
    """Export TARGET to ONNX, and check it against eager PyTorch.

    TARGET is file.py:name or package.module:name; the name is a module, a class, or a function that makes one.
    transformers:llama and timm:resnet50 are small models of these libraries, with inputs by themselves.

    \b
      trueport export model.py:Net -i x:Nx3xHxW --dim H=32..640 -o net.onnx
    """
    with told_plainly(debug):
        start = Path.cwd()
        refuse_output(Path(output), overwrite)
        showing = Showing.taken_from(options)
        checking = Checking.taken_from(options, output)
        try:
            with working(f"exporting {target}", quiet, timeout):
                request = read_request(target=target, **options)
                from trueport import export as run

                program = run(
                    request.given,
                    request.args,
                    as_meant(output, start),
                    verify=verify,
                    external_data=external_data,
                    overwrite=overwrite,
                    proof=proof and verify,
                    source=source,
                    source_root=source_root,
                    **checking.arguments(start),
                    **request.options,
                )
            report, rewritten = program.report, program.rewritten if show_rewritten else ()
        except UsageError:
            raise
        except ExportError as refused:
            if debug:
                traceback.print_exc()
            report = Report(model=target, diagnostics=refused.diagnostics, versions=installed_versions())
            rewritten = refused.rewritten if show_rewritten else ()
        if rewritten:  # results of a machine's format stay alone on stdout
            click.echo("\n".join(rewritten), err=showing.output_format != "full")
        ended = showing.finish(report)
        mention_fix(report)
    raise SystemExit(ended)

"""`trueport audit`: whether a file is the one that its certificate speaks of, and what that proves."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from trueport.cli.outcome import ending, reader_may_leave, show_findings, told_plainly
from trueport.cli.request import usage_error
from trueport.report.json import dumped, plain
from trueport.source import visible


@click.command()
@click.argument("file")
@click.option("--proof", metavar="FILE", help="The certificate; else FILE.proof.json beside the model.")
@click.option(
    "--output-format", type=click.Choice(["full", "json"]), default="full", show_default=True, help="How it is printed."
)
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def audit(file: str, proof: str | None, output_format: str, debug: bool) -> None:
    """Check that FILE is the one that its certificate speaks of, and say what was proven. Runs nothing.

    Ends with 0 where FILE and its data have the hashes of the certificate and the check had passed, with 1 where not.

    \b
      trueport audit net.onnx
    """
    with told_plainly(debug):
        from trueport.report.audit import NotACertificate, certificate_of
        from trueport.report.audit import audit as run

        model = Path(file)
        if not model.is_file():
            raise usage_error(f"there is no file {file}", fix="name an ONNX file")
        certificate = certificate_of(model) if proof is None else Path(proof)
        if not certificate.is_file():
            raise usage_error(
                f"{file} has no certificate: there is no {certificate}",
                fix="`trueport export` writes one beside the model; name another with --proof",
            )
        try:
            found = run(model, certificate)
        except NotACertificate as wrong:
            raise usage_error(
                f"{certificate} is no certificate of trueport: {wrong}", fix="export the model again"
            ) from wrong
        except OSError as wrong:
            raise usage_error(
                f"cannot read {wrong.filename}: {wrong.strerror}", fix="name files that can be read"
            ) from wrong
        ok = not found.findings
        with reader_may_leave():
            if output_format == "json":
                click.echo(
                    dumped({"file": file, "ok": ok, "findings": plain(found.findings), "statement": found.statement})
                )
            elif ok:
                click.echo(visible(f"unchanged {file} is the file that was checked"))
                facts = list(found.facts())
                width = max(len(head) for head, _ in facts)
                for head, text in facts:
                    click.echo(visible(f"  {head:<{width}}  {text}"))
        if not ok and output_format != "json":
            show_findings(found.findings, Console())
        ended = ending(found.findings)
    raise SystemExit(ended)

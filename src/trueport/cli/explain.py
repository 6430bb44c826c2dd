"""`trueport explain`: the page of a diagnostic, or the list of all of them."""

from __future__ import annotations

import re

import click
from rich.console import Console
from rich.markdown import Markdown

from trueport.cli.outcome import told_plainly
from trueport.cli.request import usage_error
from trueport.diagnostics.base import Severity
from trueport.diagnostics.registry import Rule, UnknownCode, all_rules, page, rule

FAMILIES = {
    "0": "the request and the model's health",
    "1": "control flow",
    "2": "Python that cannot be carried",
    "3": "sizes",
    "4": "operators",
    "5": "numbers and dtypes",
    "6": "versions and opsets",
    "7": "passes over the graph",
    "8": "the runtime",
    "9": "trueport's own faults",
}


@click.command()
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Explain a diagnostic: what happened, why, an example and the same example mended.

    Without CODE, list them all; with the beginning of one (TP3), list its family.
    """
    with told_plainly(debug=False):
        family = re.fullmatch(r"(?:TP)?(\d)(?:XX)?", (code or "").strip().upper())
        if code is None or (family and family[1] in FAMILIES):
            click.echo(overview(family[1] if family else None), nl=False)
            return
        try:
            text = page(rule(code))
        except UnknownCode as unknown:
            close = ", ".join(unknown.close)
            hint = f"did you mean {close}?" if close else "`trueport explain` lists them all"
            raise usage_error(str(unknown), fix=hint) from None
        console = Console()
        if console.is_terminal:
            console.print(Markdown(text))
        else:
            click.echo(text, nl=False)


def overview(only: str | None = None) -> str:
    """Every code with its title, by family; what does not stop an export is marked. Or one family alone."""
    lines: list[str] = []
    for digit, family in FAMILIES.items():
        members = [kind for known, kind in all_rules().items() if known[2] == digit and only in (None, digit)]
        if members:
            lines += [
                "",
                f"TP{digit}xx  {family}",
                *(f"  {kind.code}  {kind.title}{_weight(kind)}" for kind in members),
            ]
    return "\n".join(lines[1:]) + "\n"


def _weight(kind: Rule) -> str:
    return "" if kind.default_severity is Severity.ERROR else f" ({kind.default_severity.value})"

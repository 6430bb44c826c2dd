"""`trueport doctor`: what is installed, what it can write and load, and whether that fits where the model will run."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from trueport import __version__, temporary
from trueport.cli.outcome import ending, show_findings, told_plainly
from trueport.cli.request import usage_error
from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp601_opset_unsupported import OpsetUnsupported
from trueport.diagnostics.rules.tp602_version_mismatch import VersionMismatch

Fact = tuple[str, str]
"""Head and text of a line."""


@dataclass(frozen=True)
class DoctorFinding:
    """Something that the doctor looked at: what it says, and what is wrong with it."""

    title: str
    facts: tuple[Fact, ...]
    findings: tuple[Diagnostic, ...] = ()


@click.command()
@click.option(
    "--target",
    metavar="WHERE",
    help="Where the model will run: onnxruntime==1.17, or opset==19 for a runtime that is known by its opset.",
)
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def doctor(target: str | None, debug: bool) -> None:
    """Look at this machine: versions, opsets, and what the installed runtime supports.

    \b
      trueport doctor --target onnxruntime==1.17
    """
    with told_plainly(debug):
        wanted = None if target is None else parse_target(target)
        parts = [versions(), relied_on(), leftovers()]
        if not any(finding.is_error for finding in parts[0].findings):  # otherwise nothing else can be asked
            parts.insert(2, runtime())
            if wanted is not None:
                parts.append(target_runtime(wanted) if isinstance(wanted, tuple) else target_opset(wanted))
        findings = [finding for part in parts for finding in part.findings]
        click.echo("\n\n".join("\n".join(_lines(part)) for part in parts))
        if findings:
            click.echo()
            show_findings(findings, Console())
        ended = ending(findings)
    raise SystemExit(ended)


def parse_target(text: str) -> tuple[int, int] | int:
    """A release of ONNX Runtime, or an opset."""
    name, _, number = (part.strip() for part in text.partition("=="))
    if name in ("onnxruntime", "ort") and (match := re.fullmatch(r"(\d+)\.(\d+)(\..*)?", number)):
        return int(match[1]), int(match[2])
    if name == "opset" and number.isdecimal():
        return int(number)
    raise usage_error(f"--target {text} is not understood", fix="write onnxruntime==1.17 or opset==19")


def versions() -> DoctorFinding:
    from trueport.versions import NEEDED, installed, versions_found

    facts = [("trueport", __version__)]
    facts += [(name, f"{installed(name) or 'not installed'}  (needs {wanted})") for name, wanted in NEEDED.items()]
    found = versions_found()
    pairs = "see below" if found else "no known bad pair"
    return DoctorFinding("versions", (*facts, ("together", pairs)), found)


def relied_on() -> DoctorFinding:
    """What we rely on in torch and is no promise of torch's, looked at now."""
    from trueport.versions import broken_contract, contract

    moved = broken_contract()
    facts: list[Fact] = [("holds", f"{contract().count() - len(moved)} of {contract().count()}")]
    facts += [("moved", what) for what in moved]
    wrong = VersionMismatch(
        message=f"{len(moved)} of the things that trueport relies on in torch do not hold here",
        seen=moved,
        fix="install a torch of the range above; a maintainer finds what to do in CONTRIBUTING.md",
    )
    return DoctorFinding("what trueport relies on in torch", tuple(facts), (wrong,) if moved else ())


def runtime() -> DoctorFinding:
    """The installed runtime, asked by loading small models."""
    import onnxruntime

    from trueport.api import DEFAULT_OPSET
    from trueport.lower.opsets import LOWEST, highest, highest_ir_version, ir_version_for

    loads = f"opsets up to {highest()}, IR versions up to {highest_ir_version()}"
    writes = f"opsets {LOWEST} to {highest()}; by default {DEFAULT_OPSET}, in a file of IR version"
    return DoctorFinding(
        f"this machine's runtime: onnxruntime {onnxruntime.__version__}",
        (
            ("loads", loads),
            ("runs on", ", ".join(onnxruntime.get_available_providers())),
            ("trueport writes", f"{writes} {ir_version_for(DEFAULT_OPSET)}"),
        ),
    )


def leftovers() -> DoctorFinding:
    """What killed runs left among the temporary files and in the working folder is removed."""
    places = (Path(tempfile.gettempdir()), Path.cwd())
    found = [f"removed {path}" for place in places for path in temporary.clear(place)]
    heads = ("left by killed runs", *[""] * (len(found) - 1))
    return DoctorFinding("temporary files", tuple(zip(heads, found or ["nothing"], strict=True)))


def target_runtime(release: tuple[int, int]) -> DoctorFinding:
    """Whether another release of the runtime loads what is written."""
    from trueport.api import DEFAULT_OPSET
    from trueport.lower.opsets import LOWEST, highest, ir_version_for
    from trueport.lower.runtimes import first_release_for, loaded_by

    name = f"onnxruntime {_dotted(release)}"
    loads = loaded_by(release)
    fitting = [
        opset
        for opset in range(LOWEST, highest() + 1)
        if loads and opset <= loads.opset and ir_version_for(opset) <= loads.ir_version
    ]
    known = f"opsets up to {loads.opset}, IR versions up to {loads.ir_version}" if loads else "older than all known"
    facts = [
        ("loads", known),
        ("default export", f"opset {DEFAULT_OPSET}: {_yes(DEFAULT_OPSET in fitting)}"),
        ("not known", "whether it has a kernel for every operator and dtype of your model"),
    ]
    if not fitting:
        oldest = first_release_for(LOWEST, ir_version_for(LOWEST))
        needs = f"onnxruntime>={_dotted(oldest)}" if oldest else "a newer onnxruntime"
        refused = OpsetUnsupported(
            message=f"{name} loads no opset that trueport writes ({LOWEST} and newer)", fix=f"install {needs} there"
        )
        return DoctorFinding(f"target: {name}", tuple(facts), (refused,))
    facts.append(("can be used", _range(fitting)))
    if DEFAULT_OPSET in fitting:
        return DoctorFinding(f"target: {name}", tuple(facts))
    too_new = OpsetUnsupported(
        message=f"{name} does not load opset {DEFAULT_OPSET}, which is written by default",
        fix=f"export with --opset {fitting[-1]}",
    )
    return DoctorFinding(f"target: {name}", tuple(facts), (too_new,))


def target_opset(opset: int) -> DoctorFinding:
    """Whether a model can be written in this opset, and who loads it."""
    from trueport.lower.opsets import LOWEST, highest, ir_version_for
    from trueport.lower.runtimes import first_release_for

    if not LOWEST <= opset <= highest():
        refused = OpsetUnsupported(
            message=f"opset {opset} is not written; {LOWEST} to {highest()} are",
            fix=f"export with --opset {LOWEST if opset < LOWEST else highest()}",
        )
        return DoctorFinding(f"target: opset {opset}", (("written", "no"),), (refused,))
    oldest = first_release_for(opset, ir_version_for(opset))
    return DoctorFinding(
        f"target: opset {opset}",
        (
            ("written", f"yes, with --opset {opset}, in a file of IR version {ir_version_for(opset)}"),
            ("loaded by", f"onnxruntime {_dotted(oldest)} and newer" if oldest else "no release that was measured"),
        ),
    )


def _lines(part: DoctorFinding) -> Iterator[str]:
    width = max((len(head) for head, _ in part.facts), default=0)
    yield part.title
    yield from (f"  {head:<{width}}  {text}" for head, text in part.facts)


def _dotted(release: Iterable[int]) -> str:
    return ".".join(map(str, release))


def _yes(fits: bool) -> str:
    return "fits" if fits else "does not fit"


def _range(opsets: list[int]) -> str:
    return f"--opset {opsets[0]}" + (f" to {opsets[-1]}" if len(opsets) > 1 else "")

"""`trueport doctor`: what is installed, what it can write and load, and whether that fits where the model will run."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from trueport import __version__, temporary
from trueport.cli.outcome import ending, show_findings, told_plainly
from trueport.cli.request import input_options, read_request
from trueport.diagnostics.base import Diagnostic
from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.diagnostics.rules.tp601_opset_unsupported import OpsetUnsupported
from trueport.diagnostics.rules.tp602_version_mismatch import VersionMismatch
from trueport.errors import ExportError, UsageError
from trueport.lower.runtimes import TargetRuntime, parse_target

Fact = tuple[str, str]
"""Head and text of a line."""


@dataclass(frozen=True)
class DoctorFinding:
    """Something that the doctor looked at: what it says, and what is wrong with it."""

    title: str
    facts: tuple[Fact, ...]
    findings: tuple[Diagnostic, ...] = ()


@click.command()
@click.argument("model", required=False)
@input_options
@click.option(
    "--target",
    metavar="WHERE",
    help="Where the model will run: onnxruntime==1.17, or opset==19 for a runtime that is known by its opset.",
)
def doctor(model: str | None, target: str | None, debug: bool, **options: Any) -> None:
    """Look at this machine: versions, opsets, and what the installed runtime supports.

    With MODEL, as `trueport export` takes it, also at what that needs, and what the target costs it.

    \b
      trueport doctor --target onnxruntime==1.17
      trueport doctor model.py:Net -i x:Nx3xHxW --target onnxruntime==1.17
    """
    with told_plainly(debug):
        wanted = None if target is None else parse_target(target)
        if model is None and any(options.values()):
            raise UsageError(
                [
                    UsageFault(
                        message="there are inputs, and no model", fix="name one: trueport doctor model.py:Net -i …"
                    )
                ]
            )
        parts = [versions(), relied_on(), leftovers()]
        if not any(finding.is_error for finding in parts[0].findings):  # otherwise nothing else can be asked
            parts.insert(2, runtime())
            if wanted is not None:
                parts.append(target_of(wanted))
            if model is not None:
                parts.append(model_of(model, wanted, **options))
        findings = [finding for part in parts for finding in part.findings]
        click.echo("\n\n".join("\n".join(_lines(part)) for part in parts))
        if findings:
            click.echo()
            show_findings(findings, Console())
        ended = ending(findings)
    raise SystemExit(ended)


def versions() -> DoctorFinding:
    from trueport.installed import installed
    from trueport.versions import NEEDED, versions_found

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

    from trueport.lower.opsets import DEFAULT_OPSET, LOWEST, highest, highest_ir_version, ir_version_for

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


def target_of(target: TargetRuntime) -> DoctorFinding:
    """What can be written for it, what is written for it, and what that costs."""
    from trueport.lower.opsets import DEFAULT_OPSET, LOWEST, highest, ir_version_for, opset_to_write
    from trueport.lower.runtimes import first_release_for, loaded_by

    title, facts = f"target: {target}", list[Fact]()
    if target.release is not None:
        loads = loaded_by(target.release)
        known = f"opsets up to {loads.opset}, IR versions up to {loads.ir_version}" if loads else "older than all known"
        facts.append(("loads", known))
        facts.append(("not known", "whether it has a kernel for every operator and dtype of your model"))
        if loads is None:
            oldest = first_release_for(LOWEST, ir_version_for(LOWEST))
            refused = OpsetUnsupported(
                message=f"{target} is older than all releases whose opsets are known",
                fix=f"install onnxruntime>={_dotted(oldest or ())} there",
            )
            return DoctorFinding(title, tuple(facts), (refused,))
        facts.append(("can be used", _range(list(range(LOWEST, min(loads.opset, highest()) + 1)))))
    try:
        opset = opset_to_write(target.opset, _spelt(target))
    except UsageError as refused:
        return DoctorFinding(title, (*facts, ("written", "no")), refused.diagnostics)
    oldest = first_release_for(opset, ir_version_for(opset))
    written = f"opset {opset}, in a file of IR version {ir_version_for(opset)}"
    facts.append(("written", f"{written}, with {_flag(target)}"))
    facts.append(
        ("loaded by", f"onnxruntime {_dotted(oldest)} and newer" if oldest else "no release that was measured")
    )
    facts += _costs(opset)
    if target.release is None or opset >= DEFAULT_OPSET:
        return DoctorFinding(title, tuple(facts))
    too_new = OpsetUnsupported(
        message=f"{target} does not load opset {DEFAULT_OPSET}, which is written by default",
        fix=f"export with {_flag(target)}",
    )
    return DoctorFinding(title, tuple(facts), (too_new,))


def model_of(model: str, target: TargetRuntime | None, **options: Any) -> DoctorFinding:
    """What a model needs, and how it is written for a target; else in the default opset."""
    from trueport.cli.model_costs import costs_of
    from trueport.lower.opsets import DEFAULT_OPSET, opset_to_write

    title = f"model: {model}"
    try:
        opset = DEFAULT_OPSET if target is None else opset_to_write(target.opset, _spelt(target))
    except UsageError:  # the target has told why
        return DoctorFinding(title, (("exported", "not for this target"),))
    try:
        costs = costs_of(read_request(target=model, **options), opset)
    except UsageError:
        raise
    except ExportError as refused:
        return DoctorFinding(title, (("exported", "no, see below"),), refused.diagnostics)
    return DoctorFinding(title, tuple(costs.facts()), costs.findings)


def _spelt(target: TargetRuntime) -> str | None:
    return None if target.release is None else f"onnxruntime=={_dotted(target.release)}"


def _costs(opset: int) -> Iterator[Fact]:
    """What newer opsets say better, or what only they say."""
    from trueport.lower.opsets import NEWER

    lost = [newer for newer in NEWER if newer.since > opset]
    heads = itertools.chain(("it costs",), itertools.repeat(""))
    for newer in lost:
        what = f"{newer.operator} (opset {newer.since})"
        yield next(heads), f"{what}: {newer.instead}" if newer.instead else f"{what}: refused, for {newer.needed_by}"
    if not lost:
        yield next(heads), "nothing"


def _flag(target: TargetRuntime) -> str:
    return f"--opset {target.opset}" if target.release is None else f"--target onnxruntime=={_dotted(target.release)}"


def _lines(part: DoctorFinding) -> Iterator[str]:
    width = max((len(head) for head, _ in part.facts), default=0)
    yield part.title
    yield from (f"  {head:<{width}}  {text}" for head, text in part.facts)


def _dotted(release: Iterable[int]) -> str:
    return ".".join(map(str, release))


def _range(opsets: list[int]) -> str:
    return f"--opset {opsets[0]}" + (f" to {opsets[-1]}" if len(opsets) > 1 else "")

"""Whether the installed packages are ones with which this can work, asked before anything fails far from the cause.

`torch_internals` asks before it imports anything private of torch: on another release those imports are what fails.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from trueport.diagnostics.base import Diagnostic, Severity
from trueport.diagnostics.rules.tp602_version_mismatch import VersionMismatch
from trueport.diagnostics.rules.tp603_untested_torch import UntestedTorch
from trueport.errors import UsageError
from trueport.installed import installed

NEEDED: Mapping[str, str] = {
    "torch": ">=2.10,<2.16",
    "onnx": ">=1.20",
    "onnx-ir": ">=1.1",
    "onnxruntime": ">=1.27",
    "numpy": ">=1.26",
}
"""As in pyproject.toml (a test compares them); pip can be talked out of them, and a later install can break them."""

RUNTIMES = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-openvino", "onnxruntime-rocm")
"""Packages that all install the one module `onnxruntime`; any of them will do, two of them overwrite each other."""

FindVersion = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class BadPair:
    """Two packages that fail together in a way that does not name the cause."""

    one: str
    one_versions: str
    other: str
    other_versions: str
    why: str
    fix: str


BAD_PAIRS = (
    BadPair(
        "onnxruntime",
        "<1.19",
        "numpy",
        ">=2",
        "onnxruntime before 1.19 was built for numpy 1 and cannot be imported with numpy 2",
        'pip install "onnxruntime>=1.19"',
    ),
)


class Contract(Protocol):
    """`torch_internals/contract.py`: what we rely on in torch, and whether it is so."""

    def broken(self) -> Sequence[str]: ...

    def count(self) -> int: ...


@functools.cache
def contract() -> Contract:
    """The canary, loaded by itself: its room asks us first, and may be one that cannot be imported."""
    path = Path(__file__).parent / "torch_internals" / "contract.py"
    spec = importlib.util.spec_from_file_location("trueport_contract", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast(Contract, module)


@functools.cache
def broken_contract() -> tuple[str, ...]:
    """What has moved in this torch."""
    return tuple(contract().broken())


@functools.cache
def versions_found() -> tuple[Diagnostic, ...]:
    """What is wrong with the packages of this process; they do not change while it runs."""
    return judge_versions(installed)


def refuse_unsupported() -> None:
    """Raise where this cannot work, with the versions that are here and those that are needed."""
    if any(finding.is_error for finding in versions_found()):
        raise UsageError(versions_found())


def judge_versions(
    version_of: FindVersion, broken: Callable[[], Sequence[str]] = broken_contract
) -> tuple[Diagnostic, ...]:
    """A finding for each package that is too old (an error) or newer than what was tried (a warning), for each known
    bad pair, and for two runtimes in one place. A torch that is newer is an error where what we rely on has moved.
    """
    runtimes = [name for name in RUNTIMES if version_of(name) is not None]

    def version(package: str) -> Version | None:
        text = version_of(runtimes[0] if package == "onnxruntime" and runtimes else package)
        return Version(text) if text else None

    found = [_judged(package, wanted, version(package), broken) for package, wanted in NEEDED.items()]
    found += [_pair(pair) for pair in BAD_PAIRS if _matches(pair, version)]
    if len(runtimes) > 1:
        found.append(
            VersionMismatch(
                message=f"{' and '.join(runtimes)} are installed, and share one folder: the last one installed wins",
                fix=f"pip uninstall {' '.join(runtimes)}, then install the one that is meant",
                severity=Severity.WARNING,
            )
        )
    return tuple(one for one in found if one is not None)


def _judged(
    package: str, wanted: str, version: Version | None, broken: Callable[[], Sequence[str]]
) -> Diagnostic | None:
    if version is None or SpecifierSet(wanted).contains(version, prereleases=True):
        return None  # what is not installed at all has failed before this
    lowest = min(Version(limit.version) for limit in SpecifierSet(wanted) if limit.operator == ">=")
    too_old = version.release < lowest.release
    if package == "torch" and not too_old:
        return _untested(version, wanted, broken())
    what = f"older than what trueport needs ({wanted})" if too_old else f"newer than what was tried ({wanted})"
    return VersionMismatch(
        message=f"{package} {version} is {what}",
        fix=f'pip install "{package}{wanted}"',
        severity=Severity.ERROR if too_old else Severity.WARNING,
    )


def _untested(version: Version, wanted: str, moved: Sequence[str]) -> Diagnostic:
    newer = f"torch {version} is newer than what was tried ({wanted})"
    if not moved:
        return UntestedTorch(
            message=f"{newer}; all that trueport relies on is there", fix=f'pip install "torch{wanted}" to be sure'
        )
    return UntestedTorch(
        message=f"{newer}, and {len(moved)} of the things that trueport relies on moved",
        seen=tuple(moved),
        fix=f'pip install "torch{wanted}"',
        severity=Severity.ERROR,
    )


def _matches(pair: BadPair, version: Callable[[str], Version | None]) -> bool:
    one, other = version(pair.one), version(pair.other)
    return (
        one is not None
        and other is not None
        and SpecifierSet(pair.one_versions).contains(one, prereleases=True)
        and SpecifierSet(pair.other_versions).contains(other, prereleases=True)
    )


def _pair(pair: BadPair) -> Diagnostic:
    return VersionMismatch(message=pair.why, fix=pair.fix)

"""Which packages this ran with."""

from __future__ import annotations

from trueport.installed import installed

PACKAGES = ("trueport", "torch", "onnx", "onnx-ir", "onnxscript", "onnxruntime")


def installed_versions(packages: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    return {package: installed(package) or "not installed" for package in packages}

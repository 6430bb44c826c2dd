"""Which packages this ran with. Read from their metadata, so that nothing is imported for it."""

from __future__ import annotations

import importlib.metadata

PACKAGES = ("trueport", "torch", "onnx", "onnx-ir", "onnxscript", "onnxruntime")


def installed_versions(packages: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found

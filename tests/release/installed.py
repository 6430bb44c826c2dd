"""`make dist`: wheel and sdist are built, and each is installed into an empty venv and tried.

The venv sees the packages of the one that runs this, for torch is large; but trueport it has from the built file alone.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

PROJECT = Path(__file__).parents[2]

TRY = """
import importlib.metadata, importlib.resources, sys, trueport
from trueport.report.html import report_html
assert trueport.__file__.startswith(sys.prefix), trueport.__file__
assert importlib.metadata.version("trueport") == trueport.__version__
assert importlib.resources.files("trueport").joinpath("py.typed").is_file()
assert report_html(trueport.Report(model="Net")).startswith("<!doctype html>")
assert any(entry.value == "trueport.pytest_plugin" for entry in importlib.metadata.entry_points(group="pytest11"))
assert "torch" not in sys.modules
print("trueport", trueport.__version__, "from", trueport.__file__)
"""


def build(folder: Path, *targets: str) -> list[Path]:
    """Build wheel and sdist, or those that are named."""
    chosen = [word for target in targets for word in ("-t", target)]
    _run(sys.executable, "-m", "hatchling", "build", "-d", str(folder), *chosen, cwd=PROJECT)
    return sorted(folder.glob("trueport-*"))


def install(built: Path, venv: Path) -> Path:
    """A new venv with the built file, and the packages of this one on its path; gives the folder of its programs."""
    _run(sys.executable, "-m", "venv", "--without-pip", "--clear", str(venv))
    python = venv / "bin" / "python"
    (site,) = venv.glob("lib/python*/site-packages")
    # A plain line adds the folder; its own .pth files, and with them an editable trueport, are not read.
    (site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index"]
    _run(*pip, "--ignore-installed", "--no-build-isolation", str(built))
    return venv / "bin"


def names_in(built: Path) -> set[str]:
    if built.suffix == ".whl":
        return set(zipfile.ZipFile(built).namelist())
    with tarfile.open(built) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def _run(*command: str, cwd: Path | None = None) -> None:
    subprocess.run(command, cwd=cwd, check=True)


def main(folder: Path) -> None:
    for built in build(folder):
        binaries = install(built, PROJECT / "build" / f"installed-{built.suffix[1:]}")
        _run(str(binaries / "python"), "-I", "-c", TRY)
        print(f"{built.name}: {built.stat().st_size / 1e6:.1f} MB, {len(names_in(built))} files", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

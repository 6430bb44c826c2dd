"""What is tried, and throw-away venvs to try it in: made in a temporary folder, and gone afterwards."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import Requirement

from benchmarks.stand_ins import make_stand_ins

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements.lock"
FOR_TORCH = ("filelock", "typing_extensions", "setuptools", "sympy", "networkx", "jinja2", "fsspec")
"""What `import torch` needs; its other dependencies are for a GPU."""
FOR_TESTS = ("pytest", "hypothesis", "expecttest", "psutil", "jsonschema")


class SetupError(Exception):
    """A venv could not be made; says nothing about what was to be tried in it."""


@dataclass(frozen=True)
class Setting:
    """One row of the matrix: a minor release of torch, a Python, and the other packages as locked or the lowest."""

    torch: str
    python: str = "3.11"
    lowest: bool = False

    @property
    def title(self) -> str:
        return f"torch {self.torch}, Python {self.python}" + (", lowest" if self.lowest else "")


@dataclass(frozen=True)
class Venv:
    python: Path
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, *words: str, limit: float) -> subprocess.CompletedProcess[str]:
        """Python with these words, in the repository. It and what it starts see nothing of the venv that we run in."""
        return subprocess.run(
            [str(self.python), *words],
            cwd=ROOT,
            env=self.environment,
            text=True,
            capture_output=True,
            check=False,
            timeout=limit,
        )

    def install(self, *words: str) -> None:
        done = self.run("-m", "pip", "install", "-q", "--no-cache-dir", *words, limit=1800)
        if done.returncode:
            raise SetupError(f"pip install {' '.join(words)}\n{done.stderr[-2000:]}")

    def version(self, package: str) -> str:
        code = f"import importlib.metadata as m; print(m.version({package!r}))"
        return self.run("-c", code, limit=60).stdout.strip()


@contextlib.contextmanager
def venv(python: str) -> Iterator[Venv]:
    """An empty one."""
    with tempfile.TemporaryDirectory(prefix="trueport-matrix-") as folder:
        made = Path(folder)
        subprocess.run([interpreter(python), "-m", "venv", made / "venv"], check=True)
        (made / "tmp").mkdir()
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        environment |= {
            "PATH": f"{made / 'venv' / 'bin'}:{environment.get('PATH', '')}",
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(made / "tmp"),
            "TRUEPORT_CACHE": str(made / "cache"),
            "OMP_NUM_THREADS": "1",
        }
        yield Venv(made / "venv" / "bin" / "python", made, environment)


@contextlib.contextmanager
def with_torch(setting: Setting) -> Iterator[Venv]:
    """One with trueport, the newest patch of a torch, and what both need."""
    with venv(setting.python) as made:
        others = [requirement for requirement in dependencies() if requirement.name != "torch"]
        if setting.lowest:
            wanted = made.folder / "lowest.txt"
            wanted.write_text("".join(f"{one.name}=={lowest_of(one)}\n" for one in others))
        else:
            wanted = made.folder / "locked.txt"
            wanted.write_text("".join(f"{line}\n" for line in LOCK.read_text().splitlines() if "torch==" not in line))
            others.append(Requirement("onnxscript"))
        made.install("-c", str(wanted), *FOR_TORCH, *FOR_TESTS, *map(str, others))
        made.install("--no-deps", f"torch=={setting.torch}.*")
        (libraries,) = (made.folder / "venv").glob("lib/python*/site-packages/torch/lib")
        make_stand_ins(libraries)
        made.install("--no-deps", "--editable", str(ROOT))
        yield made


def dependencies() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [Requirement(text) for text in project["dependencies"]]


def lowest_of(requirement: Requirement) -> str:
    return next(limit.version for limit in requirement.specifier if limit.operator == ">=")


def interpreter(release: str) -> str:
    """`python3.12`, from the PATH or of pyenv. Pyenv's own commands on the PATH may refuse: they are asked."""
    kept = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    of_pyenv = sorted(kept.glob(f"{release}.*/bin/python"), key=_numbers)
    for candidate in [shutil.which(f"python{release}"), *reversed(of_pyenv)]:
        if (
            candidate
            and _answers([str(candidate), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]) == release
        ):
            return str(candidate)
    raise SetupError(f"no Python {release} here")


def _numbers(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.parents[1].name)]


def _answers(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

"""What a sweep runs: the entries of a TOML file.

timeout = 300                      # seconds for each model, unless it says otherwise
memory = "8GB"

[[model]]
target = "models/*.py:Net"         # a glob is one model for each file, from the folder of the TOML file
inputs = ["x:Nx3xHxW"]
dims = ["H=32..640"]
exclude = ["models/old_*.py"]

[[model]]
name = "small"
target = "mypackage.zoo:make_small"
weights = "small.safetensors"
options = ["--thorough"]           # any flag of `trueport export`

[[model]]
target = "transformers:llama"      # or transformers:LlamaForCausalLM, timm:resnet50: small, with inputs by itself
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.errors import UsageError
from trueport.zoo import is_named

_UNITS = {"": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_OF_A_LIST = ("inputs", "dims", "constants", "options", "exclude")
_OWNED = ("-o", "--output", "--output-format", "--report", "--timeout", "--proof", "--quiet", "-q", "--overwrite")
"""Flags that the sweep itself gives each model."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One model of a sweep, as `trueport export` takes it."""

    target: str
    name: str = ""
    inputs: tuple[str, ...] = ()
    dims: tuple[str, ...] = ()
    weights: str | None = None
    constants: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """Further flags of `trueport export`."""
    timeout: float = 600.0
    memory: int | None = None
    """Bytes that the process of the model may have; None: no limit."""
    folder: str = "."
    """Where the command is run: what paths are relative to."""

    def key(self, versions: Mapping[str, str], peers: Sequence[str] = ()) -> str:
        """By which the row is found again: another model, option or version is another row."""
        said = asdict(self) | {"versions": dict(versions), "peers": sorted(peers), "file": self._content()}
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:20]

    def _content(self) -> str | None:
        """The source, where the target is a file: an edited model is another one. A library's model, by its version."""
        if is_named(self.target):
            library = self.target.partition(":")[0]
            return next((each.version for each in distributions(name=library)), None)
        file = Path(self.folder, self.target.rpartition(":")[0])
        return hashlib.sha256(file.read_bytes()).hexdigest() if file.suffix == ".py" and file.is_file() else None

    def flags(self) -> list[str]:
        """What says which model it is, with which inputs."""
        given = [part for text in self.inputs for part in ("-i", text)]
        given += [part for text in self.dims for part in ("--dim", text)]
        given += ["--weights", self.weights] if self.weights else []
        return given + (["--constants", ",".join(self.constants)] if self.constants else [])


def read_entries(path: Path) -> list[Entry]:
    """The models of a file, globs resolved, in its order. Raises UsageError."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise _fault(f"there is no file {path}", "name a TOML file with a [[model]] for each model") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as wrong:
        raise _fault(f"{path} cannot be read: {wrong}", "write it as TOML, with a [[model]] for each model") from None
    models = content.pop("model", [])
    if not isinstance(models, list) or not all(isinstance(each, dict) for each in models) or not models:
        raise _fault(f"{path} names no model", 'add [[model]] with target = "file.py:Net"')
    _refuse_unknown(content, {"timeout", "memory"}, f"{path}")
    found = [entry for model in models for entry in _entries_of(content | model, path)]
    names = Counter(entry.name for entry in found)
    if twice := [name for name, count in names.items() if count > 1]:
        raise _fault(f"{path} has two models called {twice[0]!r}", "give each a name of its own: name = ...")
    return found


def part_of(entries: Sequence[Entry], shard: str) -> list[Entry]:
    """`3/16`: the third of sixteen parts, which are the same on every machine."""
    match = re.fullmatch(r"(\d+)/(\d+)", shard)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise _fault(f"{shard!r} is no shard", "write 3/16 for the third of sixteen parts")
    return list(entries[int(match[1]) - 1 :: int(match[2])])


def _entries_of(said: dict[str, Any], path: Path) -> list[Entry]:
    _refuse_unknown(said, {each.name for each in fields(Entry)} - {"folder"} | {"exclude"}, f"a [[model]] of {path}")
    for name in _OF_A_LIST:
        if not isinstance(said.get(name, []), list) or not all(isinstance(text, str) for text in said.get(name, [])):
            raise _fault(f"{name} of a [[model]] of {path} is no list of texts", f'{name} = ["..."]')
    target = said.pop("target", None)
    if not isinstance(target, str):
        raise _fault(f"a [[model]] of {path} has no target", 'target = "file.py:Net"')
    exclude = said.pop("exclude", [])
    if owned := [flag for flag in said.get("options", []) if flag.partition("=")[0] in _OWNED]:
        raise _fault(f"the option {owned[0]} is given by the sweep itself", "leave it out")
    said |= {name: tuple(said[name]) for name in _OF_A_LIST if name in said}
    said |= {"memory": _bytes(said["memory"])} if "memory" in said else {}
    if not isinstance(said.get("timeout", 1.0), int | float) or said.get("timeout", 1.0) <= 0:
        raise _fault(f"timeout = {said['timeout']!r} is no number of seconds", "timeout = 300")
    folder = path.resolve().parent
    targets = _files(target, folder, exclude) if any(sign in target for sign in "*?[") else [target]
    name = said.pop("name", "")
    return [Entry(target=each, name=name or each, folder=str(folder), **said) for each in targets]


def _files(target: str, folder: Path, exclude: Iterable[str]) -> list[str]:
    """One target for each file of a glob."""
    pattern, colon, attribute = target.rpartition(":") if ":" in target else (target, "", "")
    found = sorted(str(file.relative_to(folder)) for file in folder.glob(pattern))
    kept = [file for file in found if not any(fnmatch.fnmatch(file, each) for each in exclude)]
    if not kept:
        raise _fault(f"no file is called {pattern}", f"globs are taken from {folder}")
    return [f"{file}{colon}{attribute}" for file in kept]


def _bytes(text: object) -> int:
    match = re.fullmatch(r"(\d+)\s*([KMG]B)?", str(text))
    if match is None:
        raise _fault(f"memory = {text!r} is no amount of memory", 'memory = "8GB"')
    return int(match[1]) * _UNITS[match[2] or ""]


def _refuse_unknown(said: Mapping[str, Any], known: set[str], where: str) -> None:
    if unknown := sorted(set(said) - known):
        raise _fault(f"{where} has the key {unknown[0]!r}, which means nothing", f"known: {', '.join(sorted(known))}")


def _fault(message: str, fix: str) -> UsageError:
    return UsageError([UsageFault(message=message, fix=fix)])

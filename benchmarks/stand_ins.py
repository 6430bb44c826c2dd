"""Stand-ins for the libraries of a CUDA build of torch, so that it can be imported on a machine without them.

The wheels of PyPI are CUDA builds. Their nvidia packages are several GB for each release, and nothing here runs on a
GPU: so each library that torch links to, and that is not there, is made of nothing but the names that torch asks for.
Each of its functions says "no device" (100).

`python -m benchmarks.stand_ins site-packages/torch/lib` does it for torch. The same for a CUDA build of torchvision
beside a torch for the processor: `python -m benchmarks.stand_ins folder/torchvision`, where `folder` holds the unpacked
wheel. Its own operators (`torchvision::nms`, `roi_align`, `deform_conv2d`) are the real ones then.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

_VENDOR = re.compile(r"lib(cu|nv|nccl|c10_cuda|torch_cuda)\w*\.so[.\d]*")
_NAME = re.compile(r"_*(cu[a-zA-Z]|CU|nv[a-z]|nccl)|_ZNK?(3c10|2at)4cuda")
"""A function of the vendor's, or of the part of torch that calls them."""
_UNDEFINED = re.compile(r"\bUND (\w+)(?:@(\S+))?")
_VERSION = re.compile(r"File: (\S+)|Name: (\S+)\s+Flags")


def make_stand_ins(libraries: Path) -> list[str]:
    """Put a stand-in for each missing library next to those that ask for it; their names are returned."""
    ours = sorted(libraries.glob("*.so*"))
    needed: set[str] = set()
    symbols: dict[str, set[str]] = {}  # by the version that is asked for
    versions: dict[str, set[str]] = {}  # of each library
    for file in ours:
        needed |= set(re.findall(r"\(NEEDED\).*\[(.+)\]", _told("readelf", "-dW", str(file))))
        for name, version in _UNDEFINED.findall(_told("readelf", "--dyn-syms", "-W", str(file))):
            symbols.setdefault(version, set()).add(name)
        library = ""
        for of_file, version in _VERSION.findall(_told("readelf", "-VW", str(file))):
            library = of_file or library
            if version:
                versions.setdefault(library, set()).add(version)
    missing = sorted(name for name in needed if _VENDOR.fullmatch(name) and not (libraries / name).exists())
    unversioned = {name for name in symbols.get("", ()) if _is_vendors(name)}
    for index, name in enumerate(missing):
        # A symbol without a version may be anybody's: the first stand-in has them all.
        versioned = {version: symbols.get(version, set()) for version in versions.get(name, ())}
        _compile(libraries / name, versioned, unversioned if index == 0 else set())
    return missing


def _is_vendors(name: str) -> bool:
    return _NAME.match(name) is not None


def _compile(target: Path, versioned: dict[str, set[str]], plain: set[str]) -> None:
    names = plain.union(*versioned.values())
    code = "\n".join(f"long {name}(void) {{ return 100; }}" for name in sorted(names))
    command = ["cc", "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", str(target), f"-Wl,-soname,{target.name}"]
    script = target.with_suffix(".map")
    if versioned:
        parts = (f"{version} {{ global: {' '.join(f'{name};' for name in of)} }};" for version, of in versioned.items())
        script.write_text("\n".join(parts))
        command.append(f"-Wl,--version-script={script}")
    subprocess.run(command, input=code, text=True, check=True)
    script.unlink(missing_ok=True)


def look_beside(library: Path) -> None:
    """Where a library looks for others is a folder of the machine that built it: let it look where it lies itself."""
    found = re.search(r"\((?:RPATH|RUNPATH)\).*\[(.+)\]", _told("readelf", "-dW", str(library)))
    wanted = b"$ORIGIN"
    if found is None or found[1].encode() == wanted:
        return
    old = found[1].encode() + b"\0"
    content = library.read_bytes()
    assert content.count(old) == 1 and len(old) > len(wanted), found[1]
    library.write_bytes(content.replace(old, wanted.ljust(len(old), b"\0")))


def _told(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    made = make_stand_ins(Path(sys.argv[1]))
    for each in Path(sys.argv[1]).glob("_C*.so"):
        look_beside(each)
    print(*made)

"""Commands that are killed at any moment: the output is the old model or the new one, and the next run tidies up."""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import psutil

from benchmarks.soak.models import WIDTH

_MODEL = """
from benchmarks.soak.models import Large

def old():
    return Large(0.25).eval()

def new():
    return Large(0.5).eval()
"""


def run(count: int, seed: int, folder: Path) -> dict[str, Any]:
    """`folder` is for outputs, and the working folder of the commands; temporary files are in a folder of it."""
    random_ = random.Random(seed)
    (folder / "large.py").write_text(_MODEL)
    temporary = folder / "tmp"
    temporary.mkdir()
    os.environ["TMPDIR"] = str(temporary)
    import trueport.api  # noqa: F401  here, so that each command is a fork that has it

    answers = {}
    for name in ("old", "new"):
        ended, took = _command(folder, name, external=False)
        assert ended == 0, f"the command itself does not work: {ended}"
        answers[name] = _answer(folder / "net.onnx")
    ended_as: dict[str, int] = {}
    broken: list[str] = []
    left: list[str] = []
    kills = 0
    for at in itertools.count():  # a command that had ended before is no kill
        number = random_.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
        everything = number == signal.SIGKILL and random_.random() < 0.5
        name, external = random_.choice(["old", "new"]), random_.random() < 0.5
        ended, _ = _command(folder, name, external, random_.uniform(0, 1.2 * took), number, everything)
        how = "ended before" if ended == 0 else f"{number.name}{' to all' if everything else ''}"
        ended_as[how] = ended_as.get(how, 0) + 1
        kills += ended != 0
        try:
            got = _answer(folder / "net.onnx")
            if not any(np.array_equal(got, answer) for answer in answers.values()):
                broken.append(f"kill {at}: neither the old model nor the new one")
        except Exception as failure:  # noqa: BLE001  whatever it is, the file is broken
            broken.append(f"kill {at}: {failure}")
        if at % 10 == 9 or kills == count:
            ended, _ = _command(folder, name, external)
            assert ended == 0
            left += [f"kill {at}: {path}" for path in _leftovers(folder, temporary)]
            print(f"kills: {kills}/{count} {ended_as}", flush=True)
        if kills == count:
            break
    return {"kills": count, "seed": seed, "how": ended_as, "broken files": broken, "leftovers": left,
            "faults": broken + left}  # fmt: skip


def _command(
    folder: Path,
    name: str,
    external: bool,
    after: float | None = None,
    number: signal.Signals = signal.SIGTERM,
    everything: bool = False,
) -> tuple[int, float]:
    """An export, killed after so many seconds; how it ended, and what it took. All that it started has ended, too."""
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _be_the_command(folder, name, external)
    process = psutil.Process(pid)
    started = {process}
    ended = None
    while ended is None:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            ended = os.waitstatus_to_exitcode(status)
            break
        try:
            started |= set(process.children(recursive=True))
        except psutil.NoSuchProcess:
            continue
        if after is not None and time.monotonic() - began >= after:
            for each in [process, *started] if everything else [process]:
                try:
                    each.send_signal(number)
                except psutil.NoSuchProcess:
                    pass
            after = None
        time.sleep(0.005)
    took = time.monotonic() - began
    _, alive = psutil.wait_procs(started - {process}, timeout=60)
    assert not [each for each in alive if each.status() != psutil.STATUS_ZOMBIE], "a process outlives its parent"
    return ended, took


def _be_the_command(folder: Path, name: str, external: bool) -> None:
    import sys

    from trueport.cli.main import main

    os.setsid()
    os.chdir(folder)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    sys.argv = ["trueport", "export", f"large.py:{name}", "-i", f"x:Nx{WIDTH}", "-o", "net.onnx", "--overwrite"]
    sys.argv += ["--external-data"] if external else []
    ended = 1
    try:
        main()
    except SystemExit as exit_:
        ended = int(exit_.code or 0)
    finally:
        os._exit(ended)


def _answer(path: Path) -> Any:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.linspace(-1, 1, 2 * WIDTH, dtype=np.float32).reshape(2, WIDTH)})[0]


def _leftovers(folder: Path, temporary: Path) -> list[str]:
    """What is there and neither the model, nor its data, nor its proof."""
    content = (folder / "net.onnx").read_bytes()
    found = [path.name for path in folder.iterdir() if path.name not in ("large.py", "tmp", "__pycache__")]
    data = [name for name in found if name.endswith(".data") and name.encode() in content]
    beside = [name for name in found if name not in ("net.onnx", "net.onnx.proof.json", *data)]
    return beside + [path.name for path in temporary.glob("trueport-*") if "-bug-" not in path.name]

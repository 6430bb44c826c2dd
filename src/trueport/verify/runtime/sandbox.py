"""The parent's side of the worker: start it, talk to it, outlive it.

One worker is kept for the whole process, because importing onnxruntime costs more than most checks. A model that
hangs, crashes or eats memory takes the worker with it and nothing else; the next command starts a new one.
"""

from __future__ import annotations

import importlib.util
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from trueport.errors import TrueportError
from trueport.verify.runtime.frames import Frame, receive, send
from trueport.verify.runtime.no_process import no_process
from trueport.verify.runtime.tensors import RuntimeValue, TensorData, tensor_data

_CHILD = Path(__file__).with_name("child.py")
_OUT_OF_MEMORY_SIGNS = ("bad_alloc", "MemoryError", "Cannot allocate memory")


_SMALL = 32 << 10
_SELECTS = os.name == "posix"
"""Whether one can wait for a pipe."""


class FailureKind(Enum):
    """The ways in which a model can fail in the runtime without giving a wrong answer."""

    CANNOT_LOAD = "cannot-load"
    REFUSES_INPUT = "refuses-input"
    HANG = "hang"
    CRASH = "crash"
    OUT_OF_MEMORY = "out-of-memory"


class WorkerFailure(TrueportError):
    """The runtime gave no result; `detail` is its own message, the signal's name, or the limit that was met."""

    def __init__(self, kind: FailureKind, detail: str) -> None:
        super().__init__(f"{kind.value}: {detail}")
        self.kind = kind
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Limits:
    """What a model may use. Memory counts on top of what the worker needs for itself."""

    load_seconds: float = 120.0
    run_seconds: float = 60.0
    memory_bytes: int | None = 8 << 30


class Optimisation(Enum):
    """How far the runtime may rewrite the model, by onnxruntime's own names."""

    ALL = "ORT_ENABLE_ALL"
    NONE = "ORT_DISABLE_ALL"


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output as the file declares it. A size is a number, a name, or None where nothing is known."""

    name: str
    type: str
    shape: tuple[int | str | None, ...]


class LoadedModel:
    """A model file in the worker. Loads itself again when the worker had to be replaced meanwhile."""

    def __init__(self, worker: Worker, path: Path, limits: Limits, optimisation: Optimisation) -> None:
        self._worker = worker
        self._path = path.absolute()
        self._limits = limits
        self._optimisation = optimisation
        self._generation = -1
        self._number = worker.next_number()
        self.inputs: tuple[Port, ...] = ()
        self.outputs: tuple[Port, ...] = ()
        with worker.lock:
            self._load()

    def run(self, feeds: Mapping[str, TensorData], seconds: float | None = None) -> dict[str, RuntimeValue]:
        """Every output by name. Raises WorkerFailure."""
        with self._ready():
            header, blobs = self._worker.ask(
                {"do": "run", "session": self._number, "feeds": _described(feeds)},
                [value.data for value in feeds.values()],
                seconds=self._limits.run_seconds if seconds is None else seconds,
            )
        return _outputs(header["outputs"], iter(blobs))

    def run_each(
        self, inputs: Sequence[Mapping[str, TensorData]], seconds: float
    ) -> list[dict[str, RuntimeValue] | WorkerFailure]:
        """Several inputs in one go: for each its outputs by name, or why it was refused. Raises WorkerFailure where the
        process ends or hangs on the way, on whichever of them."""
        with self._ready():
            header, blobs = self._worker.ask(
                {"do": "run each", "session": self._number, "runs": [_described(feeds) for feeds in inputs]},
                [value.data for feeds in inputs for value in feeds.values()],
                seconds=seconds,
            )
        return _answers(header, blobs)

    @contextmanager
    def _ready(self) -> Iterator[None]:
        """The worker for us alone, with the model in it."""
        with self._worker.lock:
            if self._generation != self._worker.generation or not self._worker.is_running:
                self._load()
            yield

    def close(self) -> None:
        with self._worker.lock:
            if self._generation == self._worker.generation and self._worker.is_running:
                self._worker.ask({"do": "unload", "session": self._number}, seconds=self._limits.run_seconds)

    def __enter__(self) -> LoadedModel:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(WorkerFailure):  # a worker that dies while letting go has nothing more to say
            self.close()

    def _load(self) -> None:
        header, _ = self._worker.ask(
            {
                "do": "load",
                "session": self._number,
                "path": str(self._path),
                "optimisation": self._optimisation.value,
                "threads": min(4, os.cpu_count() or 1),
                "memory": self._limits.memory_bytes,
            },
            seconds=self._limits.load_seconds,
        )
        self._generation = self._worker.generation
        self.inputs = tuple(Port(name, kind, tuple(shape)) for name, kind, shape in header["inputs"])
        self.outputs = tuple(Port(name, kind, tuple(shape)) for name, kind, shape in header["outputs"])


class Worker:
    """A process that runs ONNX models. Commands from several threads wait for one another."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.generation = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._messages: IO[bytes] | None = None
        self._numbers = 0
        self._stop: weakref.finalize[..., Worker] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.is_running else None

    def load(
        self, path: Path, limits: Limits | None = None, optimisation: Optimisation = Optimisation.ALL
    ) -> LoadedModel:
        """Raises WorkerFailure when the runtime refuses the file."""
        return LoadedModel(self, path, limits or Limits(), optimisation)

    def run_once(
        self, model: bytes, inputs: Sequence[Mapping[str, TensorData]], limits: Limits
    ) -> list[dict[str, RuntimeValue] | WorkerFailure]:
        """A small model on several inputs in one go; for each its outputs by name, or why it was refused.

        Raises WorkerFailure where the model is refused, or the process ends or hangs on the way.
        """
        header, blobs = self.ask(
            {
                "do": "run once",
                "optimisation": Optimisation.ALL.value,
                "threads": 1,
                "memory": limits.memory_bytes,
                "runs": [_described(feeds) for feeds in inputs],
            },
            [model, *(each.data for feeds in inputs for each in feeds.values())],
            seconds=limits.run_seconds,
        )
        return _answers(header, blobs)

    def next_number(self) -> int:
        with self.lock:
            self._numbers += 1
            return self._numbers

    def start(self) -> None:
        """Start the process if none runs. It imports the runtime while the caller goes on."""
        with self.lock:
            if self.is_running:
                return
            self.close()
            messages = tempfile.TemporaryFile("a+b", buffering=0)  # noqa: SIM115  # as long as the process
            try:
                process = subprocess.Popen(
                    [sys.executable or "", "-I", str(_CHILD), *_library_folders()],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=messages,
                    start_new_session=True,
                )
            except OSError:
                messages.close()
                raise
            self._process, self._messages = process, messages
            self.generation += 1
            self._stop = weakref.finalize(self, _end, process, messages, os.getpid())

    def close(self) -> None:
        """End the process, whatever it is doing. The next command starts another."""
        with self.lock:
            if self._stop is not None:
                self._stop()
            self._process = self._messages = self._stop = None

    def ask(self, header: Mapping[str, Any], blobs: Sequence[bytes] = (), *, seconds: float) -> Frame:
        """One command and its answer, or a WorkerFailure."""
        with self.lock:
            try:
                self.start()
            except OSError as error:
                raise no_process(error) from error
            process = self._process
            assert process is not None
            commands, answers = process.stdin, process.stdout
            assert commands is not None
            assert answers is not None
            already_said = os.fstat(self._messages.fileno()).st_size if self._messages else 0
            patience = _Patience(process, seconds)
            try:
                if sum(map(len, blobs)) <= _SMALL and _SELECTS:  # the pipe takes it whole: no need of a thread to watch
                    send(commands, header, blobs)
                    patience.wait_for(answers)
                else:
                    patience.watch()
                    send(commands, header, blobs)
                answer, tensors = receive(answers)
            except (EOFError, BrokenPipeError, ConnectionResetError):
                patience.end()
                raise self._obituary(process, seconds if patience.is_over else None, already_said) from None
            except RuntimeError as error:  # no thread can be started
                self.close()
                raise no_process(error) from error
            except BaseException:  # an interrupt in the middle of a frame: the stream cannot be trusted any more
                self.close()
                raise
            finally:
                patience.end()
            if patience.is_over:
                self.close()
            if answer["ok"]:
                return answer, tensors
            kind = FailureKind(answer["kind"])
            if kind is FailureKind.OUT_OF_MEMORY:
                self.close()
            raise WorkerFailure(kind, answer["detail"])

    def _obituary(self, process: subprocess.Popen[bytes], overstayed: float | None, already_said: int) -> WorkerFailure:
        """What the death of the process means: it overstayed so many seconds, or it ended by itself."""
        code = process.wait()
        messages = self._messages_since(already_said)
        self.close()
        if overstayed is not None:
            return WorkerFailure(FailureKind.HANG, f"no answer within {overstayed:g} s")
        if any(sign in messages for sign in _OUT_OF_MEMORY_SIGNS):
            return WorkerFailure(FailureKind.OUT_OF_MEMORY, messages)
        ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return WorkerFailure(FailureKind.CRASH, f"{ended}: {messages}" if messages else ended)

    def _messages_since(self, position: int) -> str:
        """The end of what the process wrote to stderr during this command."""
        if self._messages is None:
            return ""
        self._messages.seek(position)
        return self._messages.read()[-2000:].decode(errors="replace").strip()


class _Patience:
    """Kills a process that has not answered in time."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        self._process, self._seconds = process, seconds
        self._timer: threading.Timer | None = None
        self.is_over = False

    def wait_for(self, answers: IO[bytes]) -> None:
        """Until there is something to read. Nothing is left in the buffer: each question has one answer."""
        if not select.select([answers], [], [], self._seconds)[0]:
            self._stop()

    def watch(self) -> None:
        """From a thread, while this one writes and reads."""
        self._timer = threading.Timer(self._seconds, self._stop)
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        if self._timer is not None and self._timer.ident is not None:
            self._timer.cancel()
            self._timer.join()

    def _stop(self) -> None:
        self.is_over = True
        _kill(self._process)


def _described(feeds: Mapping[str, TensorData]) -> list[list[Any]]:
    return [[name, value.element_type, value.shape] for name, value in feeds.items()]


def _answers(header: Mapping[str, Any], blobs: Sequence[bytes]) -> list[dict[str, RuntimeValue] | WorkerFailure]:
    """Of several runs."""
    remaining = iter(blobs)
    return [
        _outputs(run["outputs"], remaining)
        if "outputs" in run
        else WorkerFailure(FailureKind(run["kind"]), run["detail"])
        for run in header["runs"]
    ]


def _outputs(described: Sequence[Mapping[str, Any]], blobs: Iterator[bytes]) -> dict[str, RuntimeValue]:
    """By name, as the worker describes them."""
    outputs: dict[str, RuntimeValue] = {}
    for output in described:
        tensors = tuple(tensor_data(kind, shape, next(blobs)) for kind, shape in output["tensors"])
        outputs[output["name"]] = tensors if output["sequence"] else tensors[0]
    return outputs


_shared: Worker | None = None
_shared_lock = threading.Lock()


def shared_worker() -> Worker:
    """The worker of this process."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = Worker()
        return _shared


def warm_up() -> None:
    """Start the worker now, so that its imports overlap with whatever comes before the first check."""
    with suppress(OSError):  # the first command meets the same error, where somebody is there to be told
        shared_worker().start()


def _forget_after_fork() -> None:
    """The pipes of a forked process lead to its parent's worker, and two voices on one pipe make no sentence."""
    global _shared, _shared_lock
    _shared, _shared_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


def _library_folders() -> list[str]:
    found = [importlib.util.find_spec(name) for name in ("onnxruntime", "numpy")]
    return [str(Path(spec.origin).parents[1]) for spec in found if spec is not None and spec.origin]


def _end(process: subprocess.Popen[bytes], messages: IO[bytes], owner: int) -> None:
    if os.getpid() != owner:
        return
    _kill(process)
    process.wait()
    for stream in (process.stdin, process.stdout, messages):
        if stream is not None:
            with suppress(OSError):  # what was still to be flushed has no reader any more
                stream.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The whole group, so that nothing the worker may have started remains. An unreaped number is still its own."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

"""The worker's program: runs ONNX models in a process that may hang, crash or run out of memory in our stead.

It is started by path with `python -I`, imports onnxruntime and the standard library and nothing else, and so never
runs a line of the user's model. It speaks frames over what were its stdin and stdout:

    8 bytes little-endian: length of the header | header, JSON | the blobs that the header's "blobs" sizes announce

Tensors travel as raw bytes with their ONNX element type number: numpy has no name for bfloat16, float8 or int4, and
a process that only carries bytes does not need one. Sizes of 4-bit tensors are of the packed form, as ONNX has it.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import select
import struct
import sys
import threading
from collections.abc import Sequence
from typing import Any, BinaryIO

LENGTH = struct.Struct("<Q")
OUT_OF_MEMORY_SIGNS = ("bad_alloc", "bad allocation", "Failed to allocate memory", "Cannot allocate memory")

Blob = Any  # bytes, or a ctypes array over memory that onnxruntime owns
Header = dict[str, Any]


class Refusal(Exception):
    """Something that the parent is to be told instead of a result."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


class Models:
    """The sessions that the parent has asked for, by its numbers."""

    def __init__(self, runtime: Any) -> None:
        self.runtime = runtime
        self.sessions: dict[int, Any] = {}

    def load(self, header: Header) -> Header:
        session = self.session(header["path"], header)
        try:
            ports = {
                "inputs": [[value.name, value.type, value.shape] for value in session.get_inputs()],
                "outputs": [[value.name, value.type, value.shape] for value in session.get_outputs()],
            }
        except Exception as error:  # a name may be no text
            raise refusal_of("cannot-load", error) from error
        self.sessions[header["session"]] = session
        return ports

    def session(self, model: str | bytes, header: Header) -> Any:
        """Of a file, or of the bytes of one."""
        limit_memory(header["memory"])
        options = self.runtime.SessionOptions()
        options.graph_optimization_level = getattr(self.runtime.GraphOptimizationLevel, header["optimisation"])
        options.intra_op_num_threads = header["threads"]
        options.inter_op_num_threads = 1
        # The arena grows by powers of two and would meet the memory limit long before the model does.
        options.enable_cpu_mem_arena = False
        options.log_severity_level = 4
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            return self.runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions have no common base below Exception
            raise refusal_of("cannot-load", error) from error

    def run(self, header: Header, blobs: Sequence[bytes]) -> tuple[Header, list[Blob]]:
        return self.run_session(self.sessions[header["session"]], header["feeds"], blobs)

    def run_session(self, session: Any, feeds: list[Any], blobs: Sequence[bytes]) -> tuple[Header, list[Blob]]:
        try:
            given = {
                name: self.tensor(element_type, shape, blob)
                for (name, element_type, shape), blob in zip(feeds, blobs, strict=True)
            }
            outputs = outputs_of(self.runtime, session, given)
        except Exception as error:  # as above
            raise refusal_of("refuses-input", error) from error
        described = [{**output, "tensors": [tensor[:2] for tensor in output["tensors"]]} for output in outputs]
        return {"outputs": described}, [tensor[2] for output in outputs for tensor in output["tensors"]]

    def run_once(self, header: Header, blobs: list[bytes]) -> tuple[Header, list[Blob]]:
        """A small model that is not kept, on several inputs."""
        return self.each(self.session(blobs[0], header), header["runs"], blobs[1:])

    def run_each(self, header: Header, blobs: list[bytes]) -> tuple[Header, list[Blob]]:
        return self.each(self.sessions[header["session"]], header["runs"], blobs)

    def each(self, session: Any, runs: list[Any], blobs: list[bytes]) -> tuple[Header, list[Blob]]:
        """One answer for each input, which may be a refusal."""
        answers: list[Header] = []
        found: list[Blob] = []
        at = 0
        for feeds in runs:
            try:
                result, outputs = self.run_session(session, feeds, blobs[at : at + len(feeds)])
                answers.append(result)
                found += outputs
            except Refusal as refusal:
                answers.append({"kind": refusal.kind, "detail": str(refusal)})
            at += len(feeds)
        return {"runs": answers}, found

    def tensor(self, element_type: int, shape: list[int], blob: bytes) -> Any:
        value = self.runtime.OrtValue.ortvalue_from_shape_and_type(shape, element_type)
        if value.tensor_size_in_bytes() != len(blob):
            raise ValueError(f"{len(blob)} bytes do not make a tensor of shape {shape} and ONNX type {element_type}")
        if blob:
            ctypes.memmove(value.data_ptr(), blob, len(blob))
        return value

    def unload(self, header: Header) -> Header:
        self.sessions.pop(header["session"], None)
        return {}


def outputs_of(runtime: Any, session: Any, feeds: dict[str, Any]) -> list[Header]:
    """Every output. A sequence can only be read through `run`, which in turn cannot give a bfloat16 tensor."""
    declared = session.get_outputs()
    plain = [value.name for value in declared if not value.type.startswith("seq(")]
    sequences = [value.name for value in declared if value.type.startswith("seq(")]
    values: dict[str, Any] = {}
    if plain:
        values.update(zip(plain, session.run_with_ort_values(plain, feeds), strict=True))
    if sequences:
        for name, arrays in zip(sequences, session.run(sequences, feeds), strict=True):
            values[name] = [runtime.OrtValue.ortvalue_from_numpy(array) for array in arrays]
    return [
        {"name": out.name, "sequence": isinstance(values[out.name], list), "tensors": read(values[out.name])}
        for out in declared
    ]


def read(value: Any) -> list[tuple[int, list[int], Blob]]:
    """Element type, shape and bytes of a tensor, or of each tensor of a sequence. The bytes are not copied."""
    if isinstance(value, list):
        return [tensor for item in value for tensor in read(item)]
    size = value.tensor_size_in_bytes()
    if size == 0:
        return [(value.element_type(), list(value.shape()), b"")]
    blob = (ctypes.c_char * size).from_address(value.data_ptr())
    blob.keeps_alive = value  # the memory belongs to the value
    return [(value.element_type(), list(value.shape()), blob)]


def refusal_of(kind: str, error: Exception) -> Refusal:
    detail = str(error) or type(error).__name__
    if isinstance(error, MemoryError) or any(sign in detail for sign in OUT_OF_MEMORY_SIGNS):
        kind = "out-of-memory"
    return Refusal(kind, detail)


def limit_memory(allowance: int | None) -> None:
    """Allow so many bytes on top of what the process already has. Without /proc there is nothing to measure from."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as statistics:
            pages = int(statistics.read().split()[0])
    except (ImportError, OSError):
        return
    limit = resource.RLIM_INFINITY if allowance is None else pages * resource.getpagesize() + allowance
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY and (limit == resource.RLIM_INFINITY or limit > hard):
        limit = hard
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def die_before_the_parent_does() -> None:
    """No core file, and the first choice of the kernel when memory runs out."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
            score.write("1000")
    except (ImportError, OSError):
        pass  # niceties of Linux; the limits hold without them


def leave_with_the_parent(commands: int, parent: int) -> None:
    """End this process when the parent is gone, also in the middle of a run (onnxruntime lets go of the GIL there)."""
    pipe = select.poll()
    pipe.register(commands, 0)  # only the hang-up, not the data
    while True:
        hung_up = pipe.poll(2000)
        if hung_up or os.getppid() != parent:
            os._exit(0)


def receive(source: BinaryIO) -> tuple[Header, list[bytes]] | None:
    prefix = source.read(LENGTH.size)
    if len(prefix) < LENGTH.size:
        return None
    header = json.loads(source.read(LENGTH.unpack(prefix)[0]))
    return header, [source.read(size) for size in header["blobs"]]


def send(target: BinaryIO, header: Header, blobs: Sequence[Blob] = ()) -> None:
    encoded = json.dumps({**header, "blobs": [len(blob) for blob in blobs]}).encode()
    target.write(LENGTH.pack(len(encoded)))
    target.write(encoded)
    for blob in blobs:
        target.write(blob)
    target.flush()


def answer(models: Models, header: Header, blobs: list[bytes]) -> tuple[Header, list[Blob]]:
    try:
        runs = {"run": models.run, "run each": models.run_each, "run once": models.run_once}.get(header["do"])
        if runs is not None:
            result, outputs = runs(header, blobs)
            return {"ok": True, **result}, outputs
        return {"ok": True, **(models.load(header) if header["do"] == "load" else models.unload(header))}, []
    except Refusal as refusal:
        return {"ok": False, "kind": refusal.kind, "detail": str(refusal)}, []


def main(libraries: Sequence[str]) -> None:
    commands, answers = os.dup(0), os.dup(1)
    # Whatever native code prints belongs to stderr; only frames may go where stdout went.
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=leave_with_the_parent, args=(commands, os.getppid()), daemon=True).start()
    die_before_the_parent_does()
    # `-I` hides the user's site directory and PYTHONPATH; the runtime may live there.
    sys.path.extend(path for path in libraries if path not in sys.path)
    source, target = os.fdopen(commands, "rb"), os.fdopen(answers, "wb")
    models: Models | None = None
    reason = ""
    try:
        runtime = importlib.import_module("onnxruntime")
        runtime.set_default_logger_severity(4)
        models = Models(runtime)
    except ImportError as error:
        reason = f"onnxruntime cannot be imported: {error}"
    while (command := receive(source)) is not None:
        if command[0]["do"] == "quit":
            return
        if models is None:
            send(target, {"ok": False, "kind": "cannot-load", "detail": reason})
        else:
            send(target, *answer(models, *command))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Writing the model: whole or not at all, and without a second copy of the weights in memory.

Everything is first written beside its destination under another name and then moved into place, so a crash, a full disk
or an interruption leaves the old file as it was. The weights go from torch's memory to the file one by one: protobuf
merges a message that is written in several pieces, so the pieces need never be in memory together.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from trueport import progress
from trueport.lower.weights import WeightTensor

PROTOBUF_LIMIT = (1 << 31) - 1
_ROOM_FOR_THE_GRAPH = 64 << 20
_SMALL = 1 << 10

# Field numbers of onnx.proto, and protobuf's wire type of a length-delimited field.
_MODEL_GRAPH, _GRAPH_INITIALIZER, _TENSOR_RAW_DATA, _DELIMITED = 7, 5, 9, 2


def write(model: ir.Model, path: Path, external_data: bool | None = None) -> tuple[Path, ...]:
    """Write `model` to `path`; the weights go to `<name>.data` beside it on request, or when the file would be too big.

    Returns the files written, the model first.
    """
    large = _large_weights(model)
    total = sum(tensor.nbytes for tensor in large.values())
    external = total + _ROOM_FOR_THE_GRAPH > PROTOBUF_LIMIT if external_data is None else external_data
    progress.count(0, total, "bytes")
    old_data = _data_files(path)
    written = _write_external(model, path) if external else _write_one_file(model, path, large)
    for old in old_data - set(written):
        old.unlink(missing_ok=True)
    return written


def _large_weights(model: ir.Model) -> dict[str, WeightTensor]:
    return {
        name: value.const_value
        for name, value in model.graph.initializers.items()
        if isinstance(value.const_value, WeightTensor) and value.const_value.nbytes >= _SMALL
    }


def _write_one_file(model: ir.Model, path: Path, large: dict[str, WeightTensor]) -> tuple[Path, ...]:
    with _in_place(path) as temporary:
        _write_inline(model, temporary, large)
    return (path,)


def _write_inline(model: ir.Model, path: Path, large: dict[str, WeightTensor]) -> None:
    with _without(model, large):
        head = ir.to_proto(model).SerializeToString()
    with path.open("wb") as file:
        file.write(head)
        for name, tensor in large.items():
            _write_initializer(file, name, tensor)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _without(model: ir.Model, large: dict[str, WeightTensor]) -> Iterator[None]:
    """The model while its large initializers are set aside."""
    initializers = model.graph.initializers
    order = dict(initializers)
    for name in large:
        del initializers[name]
    try:
        yield
    finally:
        initializers.clear()
        initializers.update(order)


def _write_initializer(file: BinaryIO, name: str, tensor: WeightTensor) -> None:
    """One more piece of the model: `graph { initializer { name … raw_data } }`."""
    head = onnx.TensorProto(name=name, data_type=int(tensor.dtype), dims=list(tensor.shape.numpy()))
    prefix = head.SerializeToString() + _delimited(_TENSOR_RAW_DATA, tensor.nbytes)
    initializer = _delimited(_GRAPH_INITIALIZER, len(prefix) + tensor.nbytes) + prefix
    file.write(_delimited(_MODEL_GRAPH, len(initializer) + tensor.nbytes) + initializer)
    tensor.tofile(file)


def _delimited(field: int, length: int) -> bytes:
    return bytes([field << 3 | _DELIMITED]) + _varint(length)


def _varint(number: int) -> bytes:
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)


def _write_external(model: ir.Model, path: Path) -> tuple[Path, ...]:
    """The data file gets a name that no file has, so that an older model keeps the data that it points at."""
    data = path.with_name(path.name + ".data")
    if data.exists():
        data = path.with_name(f"{path.name}.{secrets.token_hex(4)}.data")
    try:
        with _in_place(path) as temporary:
            ir.save(model, temporary, external_data=data.name, size_threshold_bytes=_SMALL)
    except BaseException:
        data.unlink(missing_ok=True)
        raise
    return (path, data) if data.exists() else (path,)


def _data_files(path: Path) -> set[Path]:
    """The data files of ours that the model at `path` points at, to be removed once nothing does."""
    if not path.exists():
        return set()
    try:
        old = onnx.load(path, "protobuf", load_external_data=False)
    except DecodeError:  # not a model: whatever it is, it owns no data of ours
        return set()
    places = {e.value for t in old.graph.initializer for e in t.external_data if e.key == "location"}
    return {path.with_name(place) for place in places if place.startswith(path.name) and place.endswith(".data")}


@contextlib.contextmanager
def _in_place(path: Path) -> Iterator[Path]:
    """A name beside `path` to write under; moved to `path` at the end, removed on failure."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)

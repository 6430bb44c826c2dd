"""Writing the model: whole or not at all, and without a second copy of the weights in memory.

Everything is first written beside its destination under another name and then moved into place, so a crash, a full disk
or an interruption leaves the old file as it was. The weights go from torch's memory to the file one by one: protobuf
merges a message that is written in several pieces, so the pieces need never be in memory together.

A data file is named after its content, and is there before the model that names it. So a model never points at
another's weights, however many processes write to one path, and the same model gives the same files.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from trueport import progress, temporary
from trueport.lower.weights import Output, WeightTensor
from trueport.temporary import Hashing, Written

PROTOBUF_LIMIT = (1 << 31) - 1
_ROOM_FOR_THE_GRAPH = 64 << 20
_SMALL = 1 << 10
_DATA = re.compile(r"\.[0-9a-f]{16}\.data")
"""What follows the model's name in the name of its data file."""
_PIECE = 1 << 20
_LARGEST_SEARCHED = 256 << 20
"""Bytes of a file in which the name of a data file is looked for; a larger one is taken to have it."""

# Field numbers of onnx.proto, and protobuf's wire type of a length-delimited field.
_MODEL_GRAPH, _GRAPH_INITIALIZER, _TENSOR_RAW_DATA, _DELIMITED = 7, 5, 9, 2


def write(model: ir.Model, path: Path, external_data: bool | None = None) -> tuple[Written, ...]:
    """Write `model` to `path`; the weights go to `<name>.<hash>.data` beside it on request, or when the file would be
    too big. A link is followed, and a file that is replaced keeps its mode.

    Returns the files written, the model first.
    """
    path = Path(os.path.realpath(path))
    large = _large_weights(model)
    progress.count(0, sum(tensor.nbytes for tensor in large.values()), "bytes")
    outside = _outside(model) if (_is_too_big(large) if external_data is None else external_data) else []
    with contextlib.ExitStack() as stack:
        data, named = None, None
        if outside:
            data, file = stack.enter_context(temporary.file_in(path.parent))
            hashing = Hashing(file)
            _write_data(hashing, outside)
            named = hashing.written(path.with_name(f"{path.name}.{hashing.sha256[:16]}.data"))
            _finish(file, path)
        new, file = stack.enter_context(temporary.file_in(path.parent))
        hashing = Hashing(file)
        if named is None:
            _write_inline(model, hashing, large)
        else:
            _write_pointing(model, hashing, outside, named.path.name)
        _finish(file, path)
        _put_in_place(path, new, named.path if named else None, data)
    return (hashing.written(path), *(() if named is None else (named,)))


def write_into(model: ir.Model, file: Output) -> bool:
    """Write `model` with its weights into an open file; False, and nothing, where it is too big for one."""
    large = _large_weights(model)
    if _is_too_big(large):
        return False
    _write_inline(model, file, large)
    return True


def write_for_a_while(model: ir.Model, folder: Path) -> Path:
    """Write `model` into a folder of our own, for the runtime to read: no hash, and no care for a loss of power."""
    path, large = folder / "model.onnx", _large_weights(model)
    outside = _outside(model) if _is_too_big(large) else []
    if outside:
        with path.with_name("model.onnx.data").open("wb") as file:
            _write_data(file, outside)
    with path.open("wb") as file:
        if outside:
            _write_pointing(model, file, outside, "model.onnx.data")
        else:
            _write_inline(model, file, large)
    return path


def _is_too_big(large: Mapping[str, WeightTensor]) -> bool:
    return sum(tensor.nbytes for tensor in large.values()) + _ROOM_FOR_THE_GRAPH > PROTOBUF_LIMIT


def _large_weights(model: ir.Model) -> dict[str, WeightTensor]:
    return {
        name: value.const_value
        for name, value in model.graph.initializers.items()
        if isinstance(value.const_value, WeightTensor) and value.const_value.nbytes >= _SMALL
    }


def _write_inline(model: ir.Model, file: Output, large: dict[str, WeightTensor]) -> None:
    with _without(model, large):
        head = ir.to_proto(model).SerializeToString()
    file.write(head)
    for name, tensor in large.items():
        _write_initializer(file, name, tensor)


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


def _write_initializer(file: Output, name: str, tensor: WeightTensor) -> None:
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


def _outside(model: ir.Model) -> list[ir.Value]:
    """The initializers that go to the data file."""
    initializers = [value for graph in model.graphs() for value in graph.initializers.values()]
    return [value for value in initializers if value.const_value is not None and value.const_value.nbytes >= _SMALL]


def _write_data(file: Output, outside: Sequence[ir.Value]) -> None:
    """One tensor after the other, in the model's order."""
    for value in outside:
        tensor = value.const_value
        assert tensor is not None
        tensor.tofile(file) if isinstance(tensor, WeightTensor) else file.write(tensor.tobytes())


def _write_pointing(model: ir.Model, file: Output, outside: Sequence[ir.Value], data: str) -> None:
    """The model, whose initializers say where in the data file they are."""
    tensors, offset = [value.const_value for value in outside], 0
    try:
        for value, tensor in zip(outside, tensors, strict=True):
            assert tensor is not None
            shape = ir.Shape(tensor.shape.numpy())
            named = value.name or ""
            value.const_value = ir.ExternalTensor(data, offset, tensor.nbytes, tensor.dtype, shape=shape, name=named)
            offset += tensor.nbytes
        file.write(ir.to_proto(model).SerializeToString())
    finally:
        for value, tensor in zip(outside, tensors, strict=True):
            value.const_value = tensor


def _finish(file: BinaryIO, path: Path) -> None:
    """All of it is in the file now, safe from a loss of power, with the mode of the file that it replaces."""
    file.flush()
    with contextlib.suppress(FileNotFoundError):
        before = path.stat()
        with contextlib.suppress(PermissionError):  # a group that this user is no member of
            os.chown(file.fileno(), -1, before.st_gid)
        os.fchmod(file.fileno(), before.st_mode & 0o7777)
    os.fsync(file.fileno())


def _put_in_place(path: Path, new: Path, named: Path | None, data: Path | None) -> None:
    """The data file first, then the model that names it, then what the model before had.

    Nobody else does the same in this folder meanwhile, so that no data file goes that another model is about to name.
    Each data file also has a temporary name until the model is there: should we be killed on the way, the next run
    finds a leftover, and by it the data file that no model names.
    """
    with temporary.alone_in(path.parent), contextlib.ExitStack() as marks:
        temporary.clear(path.parent, before=_remove_unnamed)
        ours = _data_files(path)
        for old in ours:
            marks.enter_context(temporary.second_name(old))
        try:
            if named is not None and data is not None:
                ours.add(named)
                _give_second_name(data, named)
            os.replace(new, path)
        finally:
            for each in ours:
                if not _is_named(each, path.parent.iterdir()):
                    each.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _give_second_name(data: Path, named: Path) -> None:
    try:
        os.link(data, named)
    except OSError:  # there already, with the same content; or a file system that gives a file one name only
        os.replace(data, named)


def _remove_unnamed(leftover: Path) -> None:
    """The data file that a killed process put in place, and no model that names it."""
    itself = leftover.stat()
    if not leftover.is_file() or itself.st_nlink < 2:
        return
    files = list(leftover.parent.iterdir())
    for file in files:
        is_it = file != leftover and _DATA.search(file.name) and os.path.samestat(itself, file.lstat())
        if is_it and not _is_named(file, files):
            file.unlink()


def _data_files(path: Path) -> set[Path]:
    """The data files that the model at `path` names and that we wrote for it: no other is ever removed."""
    try:
        old = onnx.load(path, "protobuf", load_external_data=False)
    except (OSError, DecodeError):  # none there, or not a model: whatever it is, it owns no data of ours
        return set()
    places = {entry.value for held in _tensors(old.graph) for entry in held.external_data if entry.key == "location"}
    return {path.with_name(place) for place in places if _is_data_of(place, path.name)}


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner)


def _is_data_of(place: str, model: str) -> bool:
    return place.startswith(model) and _DATA.fullmatch(place[len(model) :]) is not None


def _is_named(data: Path, files: Iterable[Path]) -> bool:
    """Whether another file of the folder has the name in it: a copy of a model needs the data of the original.

    A certificate has it, too, and needs nothing.
    """
    others = (file for file in files if file != data and not _DATA.search(file.name) and file.suffix != ".json")
    return any(_may_have(file, data.name.encode()) for file in others)


def _may_have(file: Path, name: bytes) -> bool:
    try:
        if not file.is_file():
            return False
        if file.stat().st_size > _LARGEST_SEARCHED:
            return True
        with file.open("rb") as opened:
            end = b""
            while piece := opened.read(_PIECE):
                if name in end + piece:
                    return True
                end = piece[-len(name) :]
    except FileNotFoundError:
        return False
    except OSError:  # not for us to read
        return True
    return False


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every file system can
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

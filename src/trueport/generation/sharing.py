"""One file of weights for several graphs: an encoder and its decoder have their embedding in common."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import onnx

from trueport.verify.runtime.origin import graphs_of


def share_weights(files: Sequence[Path]) -> Path:
    """Rewrite models whose weights lie in files of their own, so that equal ones lie once, in one file.

    They are compared by their bytes, and go from file to file one by one. Returns that file.
    """
    folder = files[0].parent
    shared = folder / "weights.data"
    models = [onnx.load(file, load_external_data=False) for file in files]
    before: set[Path] = set()
    places: dict[bytes, int] = {}
    with shared.open("wb") as out:
        for model in models:
            for tensor in _outside(model):
                entries = {entry.key: entry.value for entry in tensor.external_data}
                before.add(folder / entries["location"])
                with (folder / entries["location"]).open("rb") as file:
                    file.seek(int(entries["offset"]))
                    data = file.read(int(entries["length"]))
                digest = hashlib.sha256(data).digest()
                if digest not in places:
                    places[digest] = out.tell()
                    out.write(data)
                _point(tensor, shared.name, places[digest], len(data))
    for file, model in zip(files, models, strict=True):
        file.write_bytes(model.SerializeToString())
    for old in before:
        old.unlink()
    return shared


def _outside(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    """The weights that lie outside of the file, those of inner graphs as well."""
    weights = (tensor for graph in graphs_of(model) for tensor in graph.initializer)
    return [tensor for tensor in weights if tensor.data_location == onnx.TensorProto.EXTERNAL]


def _point(tensor: onnx.TensorProto, location: str, offset: int, length: int) -> None:
    del tensor.external_data[:]
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)

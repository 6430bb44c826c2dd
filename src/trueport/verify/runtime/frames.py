"""The parent's end of the frames that the worker speaks; `child.py` has the other end and tells the format."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import IO, Any

_LENGTH = struct.Struct("<Q")

Frame = tuple[dict[str, Any], list[bytes]]


def send(target: IO[bytes], header: Mapping[str, Any], blobs: Sequence[bytes]) -> None:
    encoded = json.dumps({**header, "blobs": [len(blob) for blob in blobs]}).encode()
    target.write(_LENGTH.pack(len(encoded)) + encoded)
    for blob in blobs:
        target.write(blob)
    target.flush()


def receive(source: IO[bytes]) -> Frame:
    """Raises EOFError where the stream ends before the frame does."""
    length = _LENGTH.unpack(_exactly(source, _LENGTH.size))[0]
    header = json.loads(_exactly(source, length))
    return header, [_exactly(source, size) for size in header["blobs"]]


def _exactly(source: IO[bytes], size: int) -> bytes:
    data = source.read(size)
    if len(data) < size:
        raise EOFError
    return data

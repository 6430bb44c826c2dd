"""Where rows are kept: a folder, or any URL of fsspec (`s3://bucket/sweep`).

rows/KEY.json       one model each, written once, whole or not at all, by whoever ran it
reports/KEY.json    its report
ledger.jsonl        all rows of the last run, in the order of its entries; ledger.parquet where pyarrow is installed
report.html         the same as a page
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterable, Sequence
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.errors import UsageError
from trueport.sweeping.rows import SweepRow


class Ledger:
    """The rows of a place. Several processes and machines may use one place at a time."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self.place = os.fspath(place)
        try:
            self._files, self._root = fsspec.core.url_to_fs(self.place)
        except (ValueError, ImportError) as wrong:
            fix = "name a folder, or a URL whose fsspec package is installed (s3:// needs s3fs)"
            raise UsageError([UsageFault(message=f"{self.place} is no place for results: {wrong}", fix=fix)]) from None

    def find(self, key: str) -> SweepRow | None:
        """The row that was written under this key. One that cannot be read is none, and is written again."""
        try:
            return SweepRow.from_json(json.loads(self._files.cat_file(self._path("rows", f"{key}.json"))))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def add(self, row: SweepRow, report: str) -> None:
        """The row last: where it is, all is."""
        if report:
            self._write(report, "reports", f"{row.key}.json")
        self._write(json.dumps(row.to_json(), indent=1), "rows", f"{row.key}.json")

    def close(self, rows: Sequence[SweepRow], page: str) -> None:
        """What a run ends with."""
        self._write("".join(json.dumps(row.to_json()) + "\n" for row in rows), "ledger.jsonl")
        self._write(page, "report.html")
        with contextlib.suppress(ImportError):
            self._write(_parquet(rows), "ledger.parquet")

    def rows(self) -> list[SweepRow]:
        """Of the last run here. Raises UsageError where there was none."""
        try:
            text = self._files.cat_file(self._path("ledger.jsonl")).decode()
        except FileNotFoundError:
            fix = "name the folder that `trueport sweep -o` wrote"
            raise UsageError([UsageFault(message=f"{self.place} has no ledger.jsonl", fix=fix)]) from None
        return [SweepRow.from_json(json.loads(line)) for line in text.splitlines()]

    def _path(self, *parts: str) -> str:
        return "/".join((self._root.rstrip("/"), *parts))

    def _write(self, content: str | bytes, *parts: str) -> None:
        """An object store writes whole objects; a folder gets another name first."""
        path, data = self._path(*parts), content.encode() if isinstance(content, str) else content
        if not isinstance(self._files, LocalFileSystem):
            self._files.pipe_file(path, data)
            return
        new = f"{path}.{secrets.token_hex(6)}.new"
        self._files.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            self._files.pipe_file(new, data)
            os.replace(new, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new)


def _parquet(rows: Iterable[SweepRow]) -> bytes:
    """One column for each plain field; what has parts is JSON."""
    import pyarrow
    import pyarrow.parquet

    table: list[dict[str, Any]] = []
    for row in rows:
        content = row.to_json()
        for name in ("versions", "peers", "warnings"):
            content[name] = json.dumps(content[name])
        table.append(content)
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(table), sink)
    return bytes(sink.getvalue().to_pybytes())

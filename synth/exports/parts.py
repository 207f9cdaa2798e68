"""The files that an export's rows are written to."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

import pyarrow as pa

from shards.digest import MODULUS
from shards.store import ParquetWriter, atomic, join
from synth.exports.account import Account
from synth.exports.settings import Export
from synth.requests import digest


class Parts:
    """The files of rows, a new one each `part_rows`."""

    def __init__(self, destination: str, schema: pa.Schema, made: Export, files: ExitStack) -> None:
        self._destination, self._schema, self._made, self._files = destination, schema, made, files
        self._out: Any = None
        self._rows = 0
        self.names: list[str] = []
        self.tasks = made.tasks
        self._next()

    def _next(self) -> None:
        name = f"data/part-{len(self.names):05d}.{self._made.file}"
        url = join(self._destination, name)
        opened: Any = (
            ParquetWriter(url, self._schema, with_digest=False) if self._made.file == "parquet" else atomic(url)
        )
        self._own = self._files.enter_context(ExitStack())
        self._out = self._own.enter_context(opened)
        self._rows = 0
        self.names.append(name)

    def write(self, rows: list[dict[str, Any]], account: Account) -> None:
        while rows:
            if self._rows == self._made.part_rows:
                self.close()
                self._next()
            left = self._made.part_rows - self._rows
            own, rows = rows[:left], rows[left:]
            account.digest = (account.digest + sum(int(digest(row), 16) for row in own)) % MODULUS
            if self._made.file == "parquet":
                self._out.write(pa.RecordBatch.from_pylist(own, self._schema))
            else:
                self._out.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in own).encode())
            self._rows += len(own)
            account.written += len(own)

    def close(self) -> None:
        self._own.close()

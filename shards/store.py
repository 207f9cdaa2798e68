"""Files of a dataset on any fsspec URL: read, list, and write so that a crash leaves nothing that looks finished.

A local file is written under a temporary name in the same folder, flushed to disk, then renamed. On an object store a
PUT becomes visible only when it is complete, which is the same promise.
"""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from shards.digest import MODULUS, row_hashes
from shards.schema import conform, stored_columns

ROW_GROUP_BYTES = 64 << 20
PARTIAL = ".partial"


class StoreError(ValueError):
    """An address that names no storage that is there: one line."""


def join(*parts: str) -> str:
    """Path parts with one slash between; works for URLs as for paths."""
    head, *tail = [part for part in parts if part]
    return "/".join([head.rstrip("/"), *(part.strip("/") for part in tail)])


def filesystem(url: str) -> tuple[Any, str]:
    """The fsspec filesystem of a URL or path, and the path on it. A path without protocol is taken as it is written."""
    if "://" not in url:
        return fsspec.filesystem("file"), os.path.abspath(url)
    try:
        found, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise StoreError(
            f"{url}: {str(error).splitlines()[0] or 'a package is missing'}; see: gristmill doctor"
        ) from None
    except ValueError as error:
        known = url.partition("://")[0] in fsspec.available_protocols()
        told = str(error).splitlines()[0] if known else "no such kind of storage; as s3://, gs://, or a local folder"
        raise StoreError(f"{url}: {told}") from None
    return found, path


def is_local(url: str) -> bool:
    return "://" not in url or url.startswith("file://")


def exists(url: str) -> bool:
    files, path = filesystem(url)
    return bool(files.exists(path))


def names(folder: str, suffix: str = "") -> list[str]:
    """Sorted names of the files in a folder that end with `suffix`; none where there is no folder."""
    files, path = filesystem(folder)
    try:
        found = files.ls(path, detail=False)
    except (FileNotFoundError, NotADirectoryError):
        return []
    told = (name.rstrip("/").rsplit("/", 1)[-1] for name in found)
    return sorted(name for name in told if name.endswith(suffix) and not name.endswith(PARTIAL))


def sizes(folder: str) -> dict[str, int]:
    """Bytes of each file of a folder by name; none where there is no folder."""
    files, path = filesystem(folder)
    try:
        found = files.ls(path, detail=True)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    told = {entry["name"].rstrip("/").rsplit("/", 1)[-1]: int(entry["size"] or 0) for entry in found}
    return {name: size for name, size in told.items() if not name.endswith(PARTIAL)}


def tables(folder: str) -> list[str]:
    """Full paths of the Parquet files of a folder, sorted."""
    return [join(folder, name) for name in names(folder, ".parquet")]


def sweep(folder: str) -> None:
    """Remove what killed writers left under temporary names in a local folder and the folders below it."""
    if is_local(folder):
        for path in Path(filesystem(folder)[1]).rglob(f"*{PARTIAL}"):
            path.unlink(missing_ok=True)


def remove(url: str) -> None:
    """Remove a file or a folder with all in it; nothing where there is none."""
    files, path = filesystem(url)
    if files.exists(path):
        files.rm(path, recursive=True)


@contextmanager
def atomic(url: str) -> Iterator[IO[bytes]]:
    """A binary file to write; it has its name only when all of it is there."""
    files, path = filesystem(url)
    if not is_local(url):
        # Through a local file, since closing a remote one after an error would publish the half that was written.
        with tempfile.NamedTemporaryFile(prefix="gristmill-") as spool:
            yield spool
            spool.flush()
            files.put_file(spool.name, path)
        return
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    partial = f"{path}.{uuid.uuid4().hex[:8]}{PARTIAL}"
    try:
        with open(partial, "wb") as local:
            yield local
            local.flush()
            os.fsync(local.fileno())
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


def write_bytes(url: str, data: bytes) -> None:
    with atomic(url) as out:
        out.write(data)


def write_json(url: str, value: Any) -> None:
    write_bytes(url, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n")


def read_json(url: str) -> dict[str, Any] | None:
    """The object of a JSON file; None where there is no file, or one that is torn or holds something else."""
    files, path = filesystem(url)
    try:
        with files.open(path, "rb") as source:
            found = json.loads(source.read())
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) else None


class ParquetWriter:
    """One Parquet shard with an explicit schema (also when empty), zstd, a page index, and its rows' digest.

    Rows are gathered to row groups of about 64 MiB of Arrow memory. `close` makes the file appear; leaving by an
    exception makes it vanish.
    """

    def __init__(
        self, url: str, schema: pa.Schema, *, with_digest: bool = True, row_group_bytes: int = ROW_GROUP_BYTES
    ) -> None:
        self._row_group_bytes = row_group_bytes
        self.schema = stored_columns(schema)
        self.rows = 0
        self.digest = 0
        self._with_digest = with_digest
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._context = atomic(url)
        self._out = self._context.__enter__()
        self._file = pq.ParquetWriter(
            self._out, self.schema, compression="zstd", write_page_index=True, write_statistics=True
        )

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        batch = conform(batch, self.schema)
        self.rows += batch.num_rows
        if self._with_digest:
            self.digest = (self.digest + sum(row_hashes(batch))) % MODULUS
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= self._row_group_bytes:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._file.write_table(pa.Table.from_batches(self._waiting, self.schema), row_group_size=1 << 20)
        self._waiting, self._waiting_bytes = [], 0

    def __enter__(self) -> ParquetWriter:
        return self

    def close(self) -> None:
        self.__exit__(None, None, None)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None:
                self._flush()
            self._file.close()
        except BaseException as failed:
            self._file.is_open = False  # or its destructor would try again, and complain on stderr
            self._context.__exit__(type(failed), failed, failed.__traceback__)
            raise
        self._context.__exit__(kind, error, trace)


def read_batches(
    url: str, columns: list[str] | None = None, *, batch_rows: int = 1024, batch_bytes: int = 16 << 20
) -> Iterator[pa.RecordBatch]:
    """The rows of one Parquet file in order, in bounded batches, without loading the file."""
    files, path = filesystem(url)
    with files.open(path, "rb") as source, pq.ParquetFile(source, pre_buffer=False) as parquet:
        for batch in parquet.iter_batches(batch_size=batch_rows, columns=columns, use_threads=False):
            yield from _halves(batch, batch_bytes)


def _halves(batch: pa.RecordBatch, batch_bytes: int) -> Iterator[pa.RecordBatch]:
    if batch.num_rows > 1 and batch.nbytes > batch_bytes:
        half = batch.num_rows // 2
        yield from _halves(batch.slice(0, half), batch_bytes)
        yield from _halves(batch.slice(half), batch_bytes)
    else:
        yield batch

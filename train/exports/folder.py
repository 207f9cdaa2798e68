"""Where an export goes: a folder that appears whole or not at all, with an account of each file in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, Any
from urllib.parse import quote

import numpy as np
import xxhash
from numpy.typing import NDArray

from shards.store import PARTIAL, atomic, filesystem, is_local, join, remove, write_json
from train.tokenise.tokens import TOKENIZER

ACCOUNT = "export.json"
OWN = frozenset({ACCOUNT, TOKENIZER})  # what stands beside the domains' files
MAX_NAME = 180  # of the 255 bytes of a file's name, the rest for what a format and a writer add
COPY_BYTES = 8 << 20  # a mapped file is copied in pieces of this size, so that memory does not depend on its size


class ExportError(ValueError):
    """An export that is refused: `where: what is wrong; what would be right`."""


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What an export wrote.

    destination: its folder. files: names below it, sorted, without export.json. documents, tokens: how many the files
    hold (for rows of a run: rows, and 0 tokens unless they have input_ids). left_out: documents and tokens that they do
    not hold, by reason. digest: xxh3-128 of the lines
    `name bytes xxh3-128` of the files in order; equal exports have equal digests.
    """

    destination: str
    files: tuple[str, ...]
    documents: int
    tokens: int
    left_out: dict[str, dict[str, int]]
    digest: str


@dataclass(kw_only=True)
class Written:
    """A file while it is written: its bytes so far and their hash. What it is given stands in the file unchanged."""

    name: str
    out: IO[bytes]
    bytes: int = 0
    hash: Any = field(default_factory=xxhash.xxh3_128)

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        for start in range(0, len(view), COPY_BYTES):
            piece = view[start : start + COPY_BYTES]
            self.out.write(piece)
            self.hash.update(piece)
        self.bytes += len(view)
        return len(view)

    def write_array(self, values: NDArray[Any], dtype: str) -> None:
        """Write numbers as the little-endian `dtype`, converted piece by piece where they are of another."""
        target = np.dtype(dtype).newbyteorder("<")
        step = COPY_BYTES // max(target.itemsize, values.dtype.itemsize)
        for start in range(0, len(values), step):
            self.write(np.ascontiguousarray(values[start : start + step]).astype(target, copy=False).view(np.uint8))


class Folder:
    """The destination of one export.

    A local one is written beside its name (`NAME.partial`) and renamed when all of it is there; a remote one is written
    in place, export.json last. Leaving by an exception removes what was written.
    """

    def __init__(self, destination: str) -> None:
        self.destination = destination.rstrip("/") or destination
        self._local = is_local(destination)
        path = filesystem(self.destination)[1]
        self._base = f"{path}{PARTIAL}" if self._local else self.destination
        self._files: dict[str, tuple[int, str]] = {}

    def __enter__(self) -> Folder:
        files, path = filesystem(self.destination)
        if files.exists(path) and (not files.isdir(path) or files.ls(path, detail=False)):
            raise ExportError(f"{self.destination}: is there already; name a folder that is empty or new")
        if self._local:
            shutil.rmtree(self._base, ignore_errors=True)  # of an export that was killed
            os.makedirs(self._base)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            return
        if self._local:
            shutil.rmtree(self._base, ignore_errors=True)
            return
        for name in [*self._files, ACCOUNT]:
            with suppress(Exception):
                remove(join(self._base, name))

    def path(self, name: str) -> str:
        """Where a file of this name is written, for a writer that makes it by itself; `add` it afterwards."""
        return join(self._base, name)

    @contextmanager
    def file(self, name: str) -> Iterator[Written]:
        """A file to write; it is part of the export when the block is left."""
        with atomic(self.path(name)) as out:
            written = Written(name=name, out=out)
            yield written
        self._files[name] = (written.bytes, written.hash.hexdigest())

    def write(self, name: str, data: bytes) -> None:
        with self.file(name) as out:
            out.write(data)

    def add(self, name: str) -> None:
        """Make a file that stands at `path(name)` part of the export."""
        files, path = filesystem(self.path(name))
        digest, size = xxhash.xxh3_128(), 0
        with files.open(path, "rb") as source:
            while piece := source.read(COPY_BYTES):
                digest.update(piece)
                size += len(piece)
        self._files[name] = (size, digest.hexdigest())

    def digest_of(self, name: str) -> str:
        return self._files[name][1]

    def size_of(self, name: str) -> int:
        return self._files[name][0]

    def finish(self, account: dict[str, Any], *, documents: int, tokens: int) -> Exported:
        """Check each file's size where it lies, write export.json, and give the folder its name."""
        told = sorted((name, size, digest) for name, (size, digest) in self._files.items())
        for name, size, _ in told:
            files, path = filesystem(self.path(name))
            found = files.size(path)
            if found != size:
                raise RuntimeError(
                    f"{path}: {found} bytes, where {size} were written; look at the disk, and export again"
                )
        lines = "".join(f"{name} {size} {digest}\n" for name, size, digest in told)
        digest = xxhash.xxh3_128_hexdigest(lines.encode())
        listed = [{"name": name, "bytes": size, "digest": digest} for name, size, digest in told]
        write_json(self.path(ACCOUNT), {**account, "files": listed, "digest": digest})
        if self._local:
            path = filesystem(self.destination)[1]
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            os.replace(self._base, path)  # an empty folder gives way
        return Exported(
            destination=self.destination,
            files=tuple(name for name, _, _ in told),
            documents=documents,
            tokens=tokens,
            left_out=account["left_out"],
            digest=digest,
        )


def safe_name(name: str) -> str:
    """A domain's name as a file's: letters, digits, `-_.~` stay, others are %-encoded; never empty, hidden, the name of
    a file of ours, or longer than a file system takes: a long one is cut, and its hash tells it from others."""
    quoted = quote(name, safe="")
    if quoted.startswith(".") or quoted in OWN:
        quoted = quoted.replace(".", "%2E", 1)
    if len(quoted) > MAX_NAME:
        quoted = f"{quoted[: MAX_NAME - 33]}~{xxhash.xxh3_128_hexdigest(name.encode())}"
    return quoted or "%"

"""Local copies of remote files, and what was verified: for any number of processes, bounded, never in the way.

A file is handed over open, with a shared lock on it. Whoever makes room deletes only files that nobody holds a lock on,
and where two meet in between, an open file outlives its name: no reader ever finds its file gone. Locks die with their
process, so none is ever stale, and nobody waits for room: a cache smaller than one file works, slowly.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import xxhash

from shards.store import PARTIAL, filesystem
from train.feed.token_manifest import TokenShardsError

CHUNK_BYTES = 8 << 20
TRIES = 2  # a transfer that arrives torn is asked for once more


def default_folder() -> str:
    """The user's cache folder, or a folder of the user's own under the system's temporary one."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if os.access(base if os.path.isdir(base) else os.path.dirname(base), os.W_OK):
        return os.path.join(base, "gristmill", "tokens")
    return os.path.join(tempfile.gettempdir(), f"gristmill-tokens-{os.getuid()}")


class FileCache:
    """Whole files by their digest in a local folder, the least recently taken deleted first.

    folder: local path, shared by any number of processes of a machine. max_bytes: about what the files may take; None
    keeps all. A file in use is never deleted, so the folder may be larger while many are.
    """

    def __init__(self, folder: str, max_bytes: int | None = None) -> None:
        self.folder = Path(folder)
        self.max_bytes = max_bytes

    def open(self, url: str, size: int, digest: str) -> IO[bytes]:
        """The local copy of a remote file of that size and xxh3-128, open to read; copied and verified if absent.

        As long as it (or a map of it) is open, no process deletes it. Raises TokenShardsError for a remote file that is
        missing or is not the one that the manifest names.
        """
        path = self.folder / digest[:2] / f"{digest}-{size}.bin"
        held = self._take(path, size)
        if held is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with _locked(self.folder / f"{digest[:2]}.lock"):
                held = self._take(path, size) or self._copy(url, path, size, digest)
        return held

    def is_verified(self, state: os.stat_result, path: str, digest: str) -> bool:
        """Whether a process that used this cache has verified this very file (path, size, times, inode)."""
        return self._marker(state, path, digest).exists()

    def mark_verified(self, state: os.stat_result, path: str, digest: str) -> None:
        marker = self._marker(state, path, digest)
        with contextlib.suppress(OSError):  # it only spares others some work
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.touch()

    def _marker(self, state: os.stat_result, path: str, digest: str) -> Path:
        parts = (path, state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_dev, state.st_ino, digest)
        key = xxhash.xxh3_128_hexdigest("\n".join(map(str, parts)).encode("utf-8", "surrogateescape"))
        return self.folder / "verified" / key[:2] / key

    def _take(self, path: Path, size: int) -> IO[bytes] | None:
        try:
            held = open(path, "rb")  # noqa: SIM115 (the caller closes it)
        except FileNotFoundError:
            return None
        _lock(held, exclusive=False)
        if os.fstat(held.fileno()).st_size != size:
            held.close()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # when it was last taken; deleted meanwhile, it still can be read
        return held

    def _copy(self, url: str, path: Path, size: int, digest: str) -> IO[bytes]:
        for _ in range(TRIES):
            partial, out = _held_partial(path)
            try:
                found = _transfer(url, out)
                out.flush()
                os.fsync(out.fileno())
                if found == (size, digest):
                    self._make_room(size)
                    os.replace(partial, path)
                    _lock(out, exclusive=False)
                    out.seek(0)
                    return out
            except BaseException:
                out.close()
                raise
            finally:
                partial.unlink(missing_ok=True)
            out.close()
        raise TokenShardsError(
            f"{url}: {found[0]} bytes of digest {found[1]}, where the manifest has {size} of {digest}; "
            "copy the tokens again, or write them again"
        )

    def _make_room(self, coming: int) -> None:
        """Delete the files that were taken least recently and that nobody holds, until `coming` bytes fit in."""
        for partial in self.folder.glob(f"*/*{PARTIAL}"):
            _delete_unheld(partial)
        if self.max_bytes is None:
            return
        found = []
        for path in self.folder.glob("*/*.bin"):
            with contextlib.suppress(OSError):
                state = path.stat()
                found.append((state.st_mtime_ns, state.st_size, path))
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total + coming <= self.max_bytes:
                return
            if _delete_unheld(path):
                total -= size


def _held_partial(path: Path) -> tuple[Path, IO[bytes]]:
    """A new partial file under our lock. One without a lock is a dead process's, or between these two lines: whoever
    makes room then deletes it, and another is made."""
    while True:
        partial = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}{PARTIAL}")
        out = open(partial, "w+b")  # noqa: SIM115 (the caller closes it)
        _lock(out, exclusive=True)
        if os.fstat(out.fileno()).st_nlink:
            return partial, out
        out.close()


def _transfer(url: str, out: IO[bytes]) -> tuple[int, str]:
    """Copy a remote file in pieces; return the bytes and the digest of what arrived."""
    files, path = filesystem(url)
    digest, size = xxhash.xxh3_128(), 0
    try:
        with files.open(path, "rb") as source:
            while piece := source.read(CHUNK_BYTES):
                out.write(piece)
                digest.update(piece)
                size += len(piece)
    except FileNotFoundError as error:
        raise TokenShardsError(f"{url}: no such file; the manifest names it, so copy the tokens again") from error
    return size, digest.hexdigest()


def _lock(file: IO[Any], *, exclusive: bool) -> None:
    with contextlib.suppress(OSError):  # a file system without locks: open files outlive their names all the same
        fcntl.flock(file, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time, so that a file is not copied twice; twice would be slow but not wrong."""
    with open(path, "ab") as held:
        _lock(held, exclusive=True)
        yield


def _delete_unheld(path: Path) -> bool:
    """Delete a file unless a process holds a lock on it."""
    try:
        with open(path, "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
    except OSError:
        return False
    return True

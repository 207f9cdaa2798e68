"""What a source's globs stand for: files, sorted, each with its size and a digest of its content."""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import xxhash

from ingest.source import InputError, Source

HASH_BLOCK = 4 << 20
HTML_SUFFIXES = (".html", ".htm", ".xhtml")
PACKED_SUFFIXES = ("", ".gz", ".zst")


@dataclass(frozen=True, kw_only=True)
class InputFile:
    """One file to read.

    path: local path, or URL with its protocol. name: the path below the root of its glob (ids use it, never `path`).
    digest: xxh3-128 of the content where the file is local, `etag:...` (or size and time) on object stores.
    stamp: of a local file, `stamp_of` its status: while it is the same, a known digest still holds. Empty elsewhere.
    """

    path: str
    bytes: int
    digest: str
    name: str
    stamp: str = ""


@dataclass(frozen=True, kw_only=True)
class _Entry:
    path: str
    name: str
    info: dict[str, Any]
    local: bool


def stamp_of(status: os.stat_result) -> str:
    """What changes with a file: size, times of content and of status, inode. The latter two tell of a file that was
    put in place of another with its size and time (cp -p, rsync -t, touch -r)."""
    return f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_ino}"


def list_inputs(source: Source, known: Mapping[str, tuple[str, str]] | None = None) -> tuple[InputFile, ...]:
    """The files that the source's paths stand for, sorted by path, each once however it is spelled.

    known: {path: (stamp, digest)} of an earlier listing, so that unchanged local files are not hashed again.
    Raises InputError for a pattern that matches nothing, and for a file that is missing, cannot be read, or has a name
    that is not UTF-8.
    """
    found: dict[str, InputFile] = {}
    for pattern in source.paths:
        before = len(found)
        matched = False
        for entry in _expand(source, pattern):
            matched, path = True, entry.path
            if path not in found:
                found[path] = _input_file(source, entry, known or {})
        if not matched and len(found) == before:
            raise InputError(f"source {source.name!r}: {pattern}: no file matches; correct the path or remove it")
    return tuple(found[path] for path in sorted(found))


def _expand(source: Source, pattern: str) -> Iterator[_Entry]:
    try:
        system, inner = _located(pattern)
        local = _is_local(system)
        if any(letter in inner for letter in "*?["):
            root = _glob_root(inner)
            entries = system.glob(inner, detail=True)
            # A link to nothing and a pipe are "other": told as mistakes below, not passed over.
            files = [e for e in entries.values() if e["type"] == "file" or (local and e["type"] == "other")]
        elif system.isdir(inner):
            root = inner
            files = [
                e for e in system.find(inner, detail=True).values() if _is_content(source, _below(e["name"], root))
            ]
        else:
            root = str(PurePosixPath(inner).parent)
            # A link to nothing is told below, by its own name.
            files = [{"name": inner} if local and os.path.islink(inner) else system.info(inner)]
    except FileNotFoundError as error:
        raise InputError(f"source {source.name!r}: {pattern}: no such file; correct the path or remove it") from error
    except PermissionError as error:
        raise InputError(f"source {source.name!r}: {pattern}: no permission to read; grant it or remove it") from error
    except (ImportError, ValueError, OSError) as error:
        raise InputError(f"source {source.name!r}: {pattern}: cannot be listed ({_first_line(error)})") from error
    for entry in files:
        path = one_spelling(entry["name"]) if local else system.unstrip_protocol(entry["name"])
        name = _below(entry["name"], root)
        yield _Entry(path=path, name=posixpath.normpath(name) if local else name, info=entry, local=local)


def _located(pattern: str) -> tuple[Any, str]:
    """The fsspec filesystem and the path on it. A local path is taken as it stands: `::` in it chains nothing."""
    import fsspec

    if "://" in pattern and not pattern.startswith("file://"):
        system, inner = fsspec.core.url_to_fs(pattern)
        return system, inner
    system = fsspec.filesystem("file")
    return system, re.sub("/(?:[.]?/)+", "/", system._strip_protocol(pattern))  # a pattern matches no "//" and "/./"


def one_spelling(path: str) -> str:
    """A local path without `.`, `..` and doubled slashes; with them where a link makes the shorter one another file."""
    short = posixpath.normpath(path)
    return short if ".." not in path.split("/") or os.path.realpath(short) == os.path.realpath(path) else path


def _glob_root(pattern: str) -> str:
    parts = pattern.split("/")
    magic = next(i for i, part in enumerate(parts) if any(letter in part for letter in "*?["))
    return "/".join(parts[:magic])


def _below(path: str, root: str) -> str:
    return path[len(root) :].lstrip("/") if path.startswith(root) else PurePosixPath(path).name


def _is_content(source: Source, name: str) -> bool:
    """Whether a walk of a folder takes the file: nothing hidden, and for html only pages."""
    if any(part.startswith(".") for part in name.split("/")):
        return False
    if source.format != "html":
        return True
    lower = name.lower()
    return any(lower.endswith(page + packed) for page in HTML_SUFFIXES for packed in PACKED_SUFFIXES)


def _is_local(system: Any) -> bool:
    protocol = system.protocol
    return "file" in ((protocol,) if isinstance(protocol, str) else protocol)


def _input_file(source: Source, entry: _Entry, known: Mapping[str, tuple[str, str]]) -> InputFile:
    path = entry.path
    if not entry.local:
        digest = _remote_digest(entry.info)
        return InputFile(path=path, bytes=int(entry.info["size"] or 0), digest=digest, name=entry.name)
    shown = os.fsencode(path).decode("utf-8", "backslashreplace")
    where = f"source {source.name!r}: {shown}"
    if shown != path:
        raise InputError(f"{where}: the name is not UTF-8; rename it")
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InputError(f"{where}: not a regular file; remove it or name the files")
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            stamp = stamp_of(status)
            before = known.get(path)
            digest = before[1] if before is not None and before[0] == stamp else _content_digest(file)
    except FileNotFoundError as error:
        what = "a link to a file that is missing" if os.path.islink(path) else "no such file any more"
        raise InputError(f"{where}: {what}; mend or remove it") from error
    except PermissionError as error:
        raise InputError(f"{where}: no permission to read; grant it or remove it") from error
    except OSError as error:
        raise InputError(f"{where}: cannot be read ({error.strerror or type(error).__name__})") from error
    return InputFile(path=path, bytes=status.st_size, digest=digest, name=entry.name, stamp=stamp)


def _content_digest(file: Any) -> str:
    state = xxhash.xxh3_128()
    while block := file.read(HASH_BLOCK):
        state.update(block)
    return state.hexdigest()


def _remote_digest(info: Mapping[str, Any]) -> str:
    for key in ("ETag", "etag", "checksum", "md5Hash", "sha256"):
        if value := info.get(key):
            return "etag:" + str(value).strip('"')
    changed = info.get("LastModified") or info.get("mtime") or info.get("created") or ""
    return f"size:{info.get('size')}:{changed}"


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]

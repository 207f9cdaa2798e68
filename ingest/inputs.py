"""What a source's globs stand for: files, sorted, each with its size and a digest of its content."""

from __future__ import annotations

import os
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
    mtime_ns: local modification time, 0 elsewhere; with `bytes` it tells whether a known digest still holds.
    """

    path: str
    bytes: int
    digest: str
    name: str
    mtime_ns: int = 0


@dataclass(frozen=True, kw_only=True)
class _Entry:
    path: str
    name: str
    info: dict[str, Any]
    local: bool


def list_inputs(source: Source, known: Mapping[str, tuple[int, int, str]] | None = None) -> tuple[InputFile, ...]:
    """The files that the source's paths stand for, sorted by path.

    known: {path: (bytes, mtime_ns, digest)} of an earlier listing, so that unchanged local files are not hashed again.
    Raises InputError for a pattern that matches nothing, and for a file that is missing or cannot be read.
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
    import fsspec

    try:
        system, inner = fsspec.core.url_to_fs(pattern)
        if any(letter in inner for letter in "*?["):
            root = _glob_root(inner)
            entries = system.glob(inner, detail=True)
            files = [entry for entry in entries.values() if entry["type"] == "file"]
        elif system.isdir(inner):
            root = inner
            files = [
                e for e in system.find(inner, detail=True).values() if _is_content(source, _below(e["name"], root))
            ]
        else:
            root = str(PurePosixPath(inner).parent)
            files = [system.info(inner)]
    except FileNotFoundError as error:
        raise InputError(f"source {source.name!r}: {pattern}: no such file; correct the path or remove it") from error
    except PermissionError as error:
        raise InputError(f"source {source.name!r}: {pattern}: no permission to read; grant it or remove it") from error
    except (ImportError, ValueError, OSError) as error:
        raise InputError(f"source {source.name!r}: {pattern}: cannot be listed ({_first_line(error)})") from error
    local = _is_local(system)
    for entry in files:
        path = entry["name"] if local else system.unstrip_protocol(entry["name"])
        yield _Entry(path=path, name=_below(entry["name"], root), info=entry, local=local)


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


def _input_file(source: Source, entry: _Entry, known: Mapping[str, tuple[int, int, str]]) -> InputFile:
    path = entry.path
    if not entry.local:
        digest = _remote_digest(entry.info)
        return InputFile(path=path, bytes=int(entry.info["size"] or 0), digest=digest, name=entry.name)
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            before = known.get(path)
            if before is not None and before[:2] == (status.st_size, status.st_mtime_ns):
                digest = before[2]
            else:
                digest = _content_digest(file)
    except PermissionError as error:
        raise InputError(f"source {source.name!r}: {path}: no permission to read; grant it or remove it") from error
    except OSError as error:
        raise InputError(f"source {source.name!r}: {path}: cannot be read ({_first_line(error)})") from error
    return InputFile(path=path, bytes=status.st_size, digest=digest, name=entry.name, mtime_ns=status.st_mtime_ns)


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

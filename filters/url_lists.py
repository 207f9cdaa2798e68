"""Lists of hosts, URLs and words, as the tables that the url kernels read.

A host or URL is kept as 8 bytes of hash in a sorted array, so that ten million entries take 80 MB and load in seconds.
Two different hosts share a hash with probability 2^-64: with ten million entries one document in 10^12 is taken for a
listed one.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from filters import url_kernels as kernels
from filters import url_words as word_kernels

Hashes = npt.NDArray[np.uint64]
_LONGEST_HOST = 1_000  # bytes; a name has 253 characters, and punycode of more takes its time
_BOM = b"\xef\xbb\xbf"


class ListError(ValueError):
    """A list that cannot be read, or an entry that is none: `path: what is wrong; what would be right`."""


class Words(NamedTuple):
    """hashes: sorted; texts: what each hash stands for."""

    hashes: Hashes
    texts: dict[int, str]


class Automaton(NamedTuple):
    """Aho-Corasick over the bytes that occur in the words: classes uint8[256], moves int32[states, classes],
    found int32[states], the word that ends there or -1; texts, the words."""

    classes: npt.NDArray[np.uint8]
    moves: npt.NDArray[np.int32]
    found: npt.NDArray[np.int32]
    texts: tuple[str, ...]


def local(path: str) -> bool:
    return "://" not in path


def read(path: str) -> bytes:
    """The bytes of a list, unpacked where gzip packed them. Raises ListError."""
    try:
        if local(path):
            data = Path(path).read_bytes()
        else:
            import fsspec

            with fsspec.open(path, "rb") as file:
                data = file.read()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except FileNotFoundError as error:
        raise ListError(missing(path)) from error
    except (OSError, EOFError, zlib.error) as error:
        raise ListError(f"{path}: cannot read the list: {error}") from error
    return data.removeprefix(_BOM)


def missing(path: str) -> str:
    return f"{path}: no such list; give the path of a text file (or .gz) with one entry a line"


def hosts(paths: Sequence[str]) -> Hashes:
    """Hashes of the hosts in lists of hosts or in hosts files. Raises ListError at an entry that is no host."""
    return _joined([_hosts(path, _stamp(path)) for path in paths])


def urls(paths: Sequence[str]) -> Hashes:
    """Hashes of the URLs in lists of URLs, with or without scheme."""
    return _joined([_urls(path, _stamp(path)) for path in paths])


def words(paths: Sequence[str]) -> Words:
    """The words of word lists."""
    texts = {_hash(text): text for path in paths for text in _words(path, _stamp(path))}
    return Words(np.array(sorted(texts), np.uint64), texts)


def subwords(paths: Sequence[str]) -> Automaton:
    """An automaton that finds the words of word lists anywhere in a text."""
    return _automaton(tuple(sorted({text for path in paths for text in _words(path, _stamp(path))})))


def _stamp(path: str) -> tuple[int, int]:
    """What tells a changed file from the one that was read, so that a notebook sees an edited list."""
    if not local(path):
        return (0, 0)
    try:
        found = Path(path).stat()
    except OSError as error:
        raise ListError(missing(path)) from error
    return (found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=32)
def _hosts(path: str, stamp: tuple[int, int]) -> Hashes:
    data, starts, ends, lines = _entries(path)
    kernels.after_address(data, starts, ends)
    data, starts, ends = with_ascii_hosts(data, starts, ends)
    hashes, good = kernels.host_hashes(data, starts, ends)
    if not good.all():
        bad = int(np.argmin(good))
        entry = bytes(data[starts[bad] : ends[bad]]).decode(errors="replace")[:80]
        raise ListError(f"{path}:{lines[bad]}: {entry!r} is no host; lists of URLs belong to block_urls")
    return np.unique(hashes)


@lru_cache(maxsize=32)
def _urls(path: str, stamp: tuple[int, int]) -> Hashes:
    data, starts, ends, _ = _entries(path)
    return np.unique(kernels.url_hashes(*with_ascii_hosts(data, starts, ends)))


@lru_cache(maxsize=32)
def _words(path: str, stamp: tuple[int, int]) -> tuple[str, ...]:
    data, starts, ends, _ = _entries(path)
    found = (plain(bytes(data[start:end])) for start, end in zip(starts, ends, strict=True))
    return tuple(sorted({word for word in found if word}))


def plain(entry: bytes) -> str:
    """A word as URLs are read: decoded, small letters, letters and digits only (`2 girls` is `2girls`)."""
    data = np.frombuffer(entry, np.uint8)
    out = np.zeros(len(data), np.uint8)
    size = word_kernels.plain(data, 0, len(data), out)
    return bytes(byte for byte in out[:size].tolist() if word_kernels.in_word(byte)).decode(errors="replace")


def _hash(text: str) -> int:
    data = np.frombuffer(text.encode(), np.uint8)
    return int(word_kernels.word_hash(data, 0, len(data)))


def _entries(
    path: str,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    data = np.frombuffer(read(path), np.uint8)
    starts, ends, lines = kernels.entries(data)
    return data, starts, ends, lines


def _joined(tables: Sequence[Hashes]) -> Hashes:
    if len(tables) == 1:
        return tables[0]
    return np.unique(np.concatenate(tables)) if tables else np.zeros(0, np.uint64)


def with_ascii_hosts(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The same URLs, hosts beyond ASCII in punycode. Those few are rewritten one by one at the end of the data."""
    odd = np.flatnonzero(kernels.odd_hosts(data, starts, ends))
    if len(odd) == 0:
        return data, starts, ends
    rewritten = [ascii_host(bytes(data[starts[i] : ends[i]])) for i in odd]
    starts, ends = starts.copy(), ends.copy()
    ends[odd] = len(data) + np.cumsum([len(one) for one in rewritten])
    starts[odd] = ends[odd] - [len(one) for one in rewritten]
    return np.concatenate([data, np.frombuffer(b"".join(rewritten), np.uint8)]), starts, ends


def ascii_host(url: bytes) -> bytes:
    """A URL with its host percent-decoded and in punycode. What is no host name stays as it is."""
    data = np.frombuffer(url, np.uint8)
    first, rest = kernels.authority(data, 0, len(data))
    first, last = kernels.host(data, first, rest)
    if last - first > _LONGEST_HOST:
        return url
    name = unquote(url[first:last].decode(errors="replace"))
    try:
        # IDNA 2003, whose tables are fixed in the standard library: the answer is that of every Python.
        coded = name.encode("idna")
    except UnicodeError:
        return url
    return url[:first] + coded + url[last:]


def _automaton(texts: tuple[str, ...]) -> Automaton:
    coded = [text.encode() for text in texts]
    letters = sorted({byte for word in coded for byte in word})
    classes = np.zeros(256, np.uint8)
    classes[letters] = np.arange(1, len(letters) + 1)
    states = 1 + sum(map(len, coded))
    moves = np.zeros((states, len(letters) + 1), np.int32)
    found = np.full(states, -1, np.int32)
    used = 1
    for number, word in enumerate(coded):
        state = 0
        for byte in word:
            if moves[state, classes[byte]] == 0:
                moves[state, classes[byte]] = used
                used += 1
            state = int(moves[state, classes[byte]])
        found[state] = number
    word_kernels.link(moves[:used], found[:used])
    return Automaton(classes, moves[:used].copy(), found[:used].copy(), texts)

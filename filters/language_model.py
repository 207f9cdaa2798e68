"""Reads a quantised fastText classifier and applies it to whole batches, compiled, without a Python call a text.

The file format and the arithmetic are fastText's (Joulin et al. 2016, arXiv:1607.01759 and 1612.03651): words and
their character n-grams are looked up, their vectors averaged, and a Huffman tree of logistic nodes gives each label's
probability. Sums are float32 in fastText's order, so scores equal those of fasttext-predict to rounding; the tests
compare both. Written for what lid.176.ftz is: a pruned, product-quantised model with hierarchical softmax, character
n-grams and no word n-grams. Any other kind is refused by name.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from filters.language_kernels import BUCKETS
from filters.language_tree import Tree, huffman

_MAGIC = 793712314
_NEWEST = 12
_HIERARCHICAL_SOFTMAX = 1
_SUPERVISED = 3
_CENTROIDS = 256
_LABEL = 1
_LABEL_PREFIX = "__label__"
_END = "</s>"

NO_ROW = np.uint16(0xFFFF)
"""In `buckets`: the n-gram was pruned from the model."""


class ModelError(ValueError):
    """The file is no model that this reader knows."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """A fastText classifier as arrays. w words, g kept n-grams, d dimensions, k labels.

    labels: k names without the `__label__` prefix.
    vectors: float32[w + g, d]; buckets: uint16[buckets], an n-gram's row less w, or NO_ROW.
    word_slots: int32[power of two], open addressing by the word's hash, -1 where free; word_bytes, word_offsets: the
    words themselves, to compare. end_row: the row of the end-of-line word, -1 where there is none.
    shortest, longest: characters of an n-gram.
    """

    labels: tuple[str, ...]
    vectors: npt.NDArray[np.float32]
    buckets: npt.NDArray[np.uint16]
    word_slots: npt.NDArray[np.int32]
    word_bytes: npt.NDArray[np.uint8]
    word_offsets: npt.NDArray[np.int64]
    end_row: int
    shortest: int
    longest: int
    tree: Tree

    def lookup(self) -> tuple[object, ...]:
        """What the kernels read to turn a text into vectors."""
        tables = (self.word_slots, self.word_bytes, self.word_offsets)
        return (*tables, self.shortest, self.longest, self.buckets, self.vectors)


class _Reader:
    """A cursor over the bytes of a little-endian file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, layout: str) -> tuple[int | float, ...]:
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def integer(self, layout: str) -> int:
        return int(self.take(layout)[0])

    def word(self) -> bytes:
        end = self.data.index(0, self.at)
        found = self.data[self.at : end]
        self.at = end + 1
        return found

    def array(self, kind: npt.DTypeLike, count: int) -> npt.NDArray[np.generic]:
        found = np.frombuffer(self.data, dtype=kind, count=count, offset=self.at)
        self.at += found.nbytes
        return found


@cache
def load(path: str) -> Model:
    """The model in a file, once a process. Raises ModelError where the file is none, or of another kind."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ModelError(f"{path}: cannot read the language model: {error.strerror}") from error
    try:
        return _parse(_Reader(data))
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error
    except (struct.error, ValueError, IndexError, OverflowError) as error:
        raise ModelError(f"{path}: not a whole fastText model; fetch it again") from error


def _parse(file: _Reader) -> Model:
    if file.integer("i") != _MAGIC or file.integer("i") > _NEWEST:
        raise ModelError("not a fastText model")
    dim, _, _, _, _, word_ngrams, loss, kind, buckets, shortest, longest, _ = (int(v) for v in file.take("12i"))
    file.take("d")
    if (kind, loss, word_ngrams, buckets) != (_SUPERVISED, _HIERARCHICAL_SOFTMAX, 1, BUCKETS):
        raise ModelError("this kind of fastText model is not read here; use lid.176.ftz")
    words, labels, counts, pruned = _dictionary(file)
    if file.integer("?") == 0 or pruned.shape[0] == 0:
        raise ModelError("the fastText model is not quantised; use lid.176.ftz")
    vectors = _quantised(file, dim)
    if len(vectors) != len(words) + len(pruned) or len(pruned) >= int(NO_ROW):
        raise ModelError("the fastText model's tables do not fit together")
    file.integer("?")  # whether the output is quantised; lid.176.ftz's is not, which the shape check below sees
    nodes, width = file.integer("q"), file.integer("q")
    if (nodes, width) != (len(labels), dim):
        raise ModelError("the fastText model's output is quantised; use lid.176.ftz")
    output = file.array("<f4", nodes * width).reshape(nodes, width).astype(np.float32)
    table = np.full(buckets, NO_ROW, np.uint16)
    table[pruned[:, 0]] = pruned[:, 1].astype(np.uint16)
    slots, word_bytes, word_offsets = _word_table(words)
    return Model(
        labels=tuple(labels),
        vectors=vectors,
        buckets=table,
        word_slots=slots,
        word_bytes=word_bytes,
        word_offsets=word_offsets,
        end_row=words.index(_END.encode()) if _END.encode() in words else -1,
        shortest=shortest,
        longest=longest,
        tree=huffman(counts, output),
    )


def _dictionary(file: _Reader) -> tuple[list[bytes], list[str], list[int], npt.NDArray[np.int32]]:
    size, n_words, n_labels = (int(v) for v in file.take("3i"))
    _, n_pruned = (int(v) for v in file.take("2q"))
    words: list[bytes] = []
    labels: list[str] = []
    counts: list[int] = []
    for _ in range(size):
        entry = file.word()
        count, kind = file.take("qb")
        if kind == _LABEL:
            labels.append(entry.decode().removeprefix(_LABEL_PREFIX))
            counts.append(int(count))
        else:
            words.append(entry)
    if (len(words), len(labels)) != (n_words, n_labels):
        raise ModelError("the fastText model's dictionary is damaged")
    pruned = file.array("<i4", 2 * max(n_pruned, 0)).reshape(-1, 2).astype(np.int32)
    return words, labels, counts, pruned


def _quantised(file: _Reader, dim: int) -> npt.NDArray[np.float32]:
    """The rows of a product-quantised matrix, written out: lid.176's 50,000 rows of 16 take 3.2 MB."""
    with_norms = bool(file.integer("?"))
    rows, width, size = file.integer("q"), file.integer("q"), file.integer("i")
    if width != dim:
        raise ModelError("the fastText model's vectors have another width than it says")
    codes = file.array("<u1", size).reshape(rows, -1)
    centroids = _centroids(file)
    vectors = np.concatenate([part[codes[:, i]] for i, part in enumerate(centroids)], axis=1)
    if with_norms:
        norm_codes = file.array("<u1", rows)
        vectors = vectors * _centroids(file)[0][norm_codes]
    return np.ascontiguousarray(vectors, dtype=np.float32)


def _centroids(file: _Reader) -> list[npt.NDArray[np.float32]]:
    dim, parts, width, last = (int(v) for v in file.take("4i"))
    flat = file.array("<f4", dim * _CENTROIDS).astype(np.float32)
    widths = [width] * (parts - 1) + [last]
    starts = [i * _CENTROIDS * width for i in range(parts)]
    return [
        flat[start : start + _CENTROIDS * w].reshape(_CENTROIDS, w) for start, w in zip(starts, widths, strict=True)
    ]


def _word_table(words: list[bytes]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    slots = np.full(1 << (4 * len(words)).bit_length(), -1, np.int32)
    for row, word in enumerate(words):
        slot = _hash(word) & (len(slots) - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = row
    offsets = np.zeros(len(words) + 1, np.int64)
    np.cumsum([len(word) for word in words], out=offsets[1:])
    return slots, np.frombuffer(b"".join(words), np.uint8), offsets


def _hash(word: bytes) -> int:
    """fastText's FNV-1a of 32 bits, which widens each byte with its sign."""
    value = 2166136261
    for byte in word:
        value = ((value ^ (byte if byte < 0x80 else byte | 0xFFFFFF00)) * 16777619) & 0xFFFFFFFF
    return value

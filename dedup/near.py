"""Near-duplicates among texts at hand: the decisions of the step `minhash`, without an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dedup.greedy import State
from dedup.minhash import PREDECESSORS, Minhash
from dedup.order import ties, worth
from dedup.sets import jaccard, unique_sorted, word_sequence_hash
from dedup.sketch import band_keys, signatures_of
from text import ngram_hashes, tokenize
from text.buffers import Texts
from text.jit import kernel

Int64s = npt.NDArray[np.int64]


def near_duplicates(texts: Texts, ids: Sequence[str] | pa.Array | None = None, **settings: Any) -> pa.Table:
    """Table(id, kept_id, similarity): a row a text that would go, in the order of the texts.

    texts: a list of str or an Arrow array. ids: string[n], by default the positions as int64. settings: those of
    `Minhash` (ngram, bands, rows, verify, keep, seed, leaders); of the keep policies those by date are not to be had.
    similarity is the exact Jaccard similarity of the two texts' shingle sets, at least `verify`.
    Memory: the texts' shingle hashes, 8 bytes a word. Raises ValueError for ids of another length or a bad setting.
    """
    step = Minhash(**settings)
    if step.keep not in ("longest", "first_id"):
        raise ValueError(f"keep={step.keep!r} needs dates: run the step on documents, or keep longest or first_id here")
    tokens = tokenize(texts)
    n = len(tokens)
    names = pa.array(np.arange(n)) if ids is None else pa.array(ids, pa.string()) if isinstance(ids, Sequence) else ids
    if len(names) != n:
        raise ValueError(f"{len(names)} ids for {n} texts")
    tie = np.zeros((n, 2), np.int64) if ids is None else ties(names)
    hashes, offsets = tokens.words_only()
    shingles, shingle_offsets = ngram_hashes(hashes, offsets, step.ngram)
    place = np.empty(n, np.int64)
    value = worth(step.keep, tokens.characters, pa.nulls(n, pa.timestamp("us", "UTC")))
    order = np.lexsort((np.arange(n), tie[:, 1], tie[:, 0], value))
    place[order] = np.arange(n)
    heads = _heads(word_sequence_hash(hashes, offsets), place, np.diff(offsets) > 0)
    nodes = np.flatnonzero(heads == np.arange(n))
    a, b = _candidates(step, shingles, shingle_offsets, nodes, place)
    docs, kept, similar = _decided(unique_sorted(shingles, shingle_offsets), a, b, tie, step.verify)
    kept_of, similarity = heads.copy(), np.ones(n)
    kept_of[heads < 0] = np.flatnonzero(heads < 0)
    kept_of[docs], similarity[docs] = kept, similar
    twins = np.flatnonzero((heads >= 0) & (heads != np.arange(n)))
    kept_of[twins], similarity[twins] = kept_of[heads[twins]], similarity[heads[twins]]
    gone = np.flatnonzero(kept_of != np.arange(n))
    return pa.table(
        {
            "id": names.take(pa.array(gone)),
            "kept_id": names.take(pa.array(kept_of[gone])),
            "similarity": similarity[gone],
        }
    )


def _heads(sequence: Int64s, place: Int64s, has_words: npt.NDArray[np.bool_]) -> Int64s:
    """For each text the first in keep order that has the same words; -1 for a text without words."""
    heads = np.full(len(place), -1, np.int64)
    order = np.lexsort((place, sequence[:, 1], sequence[:, 0]))
    order = order[has_words[order]]
    if len(order):
        starts = np.r_[True, (sequence[order[1:]] != sequence[order[:-1]]).any(axis=1)]
        heads[order] = order[np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))]
    return heads


def _candidates(
    step: Minhash, shingles: npt.NDArray[np.uint64], offsets: Int64s, nodes: Int64s, place: Int64s
) -> tuple[Int64s, Int64s]:
    """(a, b): pairs of texts that share a band, a before b, sorted by b and a in keep order, each once."""
    keys = band_keys(signatures_of(shingles, offsets, step.bands * step.rows, step.seed)[nodes], step.bands, step.rows)
    by_place = np.argsort(place)
    flat, where = keys.ravel(), np.repeat(place[nodes], step.bands)
    order = np.lexsort((where, flat))
    pairs = _pairs(flat[order], where[order], step.leaders, PREDECESSORS, len(place))
    return by_place[pairs % len(place)], by_place[pairs // len(place)]


def _decided(
    sets: tuple[npt.NDArray[np.uint64], Int64s], a: Int64s, b: Int64s, tie: Int64s, verify: float
) -> tuple[Int64s, Int64s, npt.NDArray[np.float64]]:
    """(docs, kept, similarities) of the removals among the pairs."""
    similarity = np.empty(len(a))
    _similarities(*sets, a, b, verify, similarity)
    edge = similarity >= verify
    a, b = a[edge], b[edge]
    state = State()
    parts = [
        state.feed((np.zeros(len(b), np.int64), b, a, *np.ascontiguousarray(tie[a].T), similarity[edge])),
        state.finish(),
    ]
    table = pa.Table.from_batches(parts)
    return table.column("doc").to_numpy(), table.column("kept").to_numpy(), table.column("similarity").to_numpy()


@numba.njit(cache=True, nogil=True)
def _pairs(keys, places, leaders, predecessors, n):  # type: ignore[no-untyped-def]
    """b * n + a of each pair of places, sorted and unique: linear in the size of a group of equal keys."""
    out = np.empty(1024, np.int64)
    size = 0
    first = 0
    for i in range(len(keys)):
        if keys[i] != keys[first]:
            first = i
        for j in range(first, min(first + leaders, i)):
            size, out = _push(out, size, places[i] * n + places[j])
        for j in range(max(first + leaders, i - predecessors), i):
            size, out = _push(out, size, places[i] * n + places[j])
    return np.unique(out[:size])


@numba.njit(cache=True, nogil=True, inline="always")
def _push(out, size, value):  # type: ignore[no-untyped-def]
    if size == len(out):
        larger = np.empty(2 * size, out.dtype)
        larger[:size] = out
        out = larger
    out[size] = value
    return size + 1, out


@kernel
def _similarities(values, ends, a, b, at_least, out):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    for i in range(len(a)):
        left = values[ends[a[i]] : ends[a[i] + 1]]
        out[i] = jaccard(left, values[ends[b[i]] : ends[b[i] + 1]], at_least)

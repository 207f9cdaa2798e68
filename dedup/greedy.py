"""The decision inside a component of verified near-duplicates: one pass in keep order.

A document goes where it has a verified edge to a document that was kept before it; else it is kept. So each removal
has a survivor that was compared with it, and similarity is never passed along a chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

FATES = pa.schema([("doc", pa.int64()), ("kept", pa.int64()), ("similarity", pa.float64())])

EDGE = ("component", "b", "a", "tie_a", "tie_b", "similarity")

_NONE = -1
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(20)


class Greedy:
    """A kernel over edges (the columns of EDGE), a before b in keep order, sorted by component and by b in keep order.

    Yields a row a removal: doc (b), kept (the most similar kept a; the smaller ties, then the smaller number,
    where two are equally similar) and their similarity. Holds 16 bytes a removed document of the component at hand.
    """

    schema = FATES

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        state = State()
        for batch in batches:
            yield state.feed(tuple(batch.column(name).to_numpy() for name in EDGE))
        yield state.finish()


class State:
    """The pass between two batches: where it stands, and which documents of the component have gone."""

    def __init__(self) -> None:
        self._at = np.array([_NONE, _NONE, _NONE, 0, 0, 0], np.int64)  # component, b, best a, its ties, gone
        self._best = np.zeros(1)
        self._gone = _new_table(64)

    def feed(self, edges: tuple[npt.NDArray[Any], ...]) -> pa.RecordBatch:
        """The removals that these edges, the columns of the kernel's input in its order, settle."""
        n = len(edges[0])
        doc, kept, similar = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
        n, self._gone = _pass(edges, self._at, self._best, self._gone, doc, kept, similar)
        return pa.RecordBatch.from_arrays([pa.array(c[:n]) for c in (doc, kept, similar)], schema=FATES)

    def finish(self) -> pa.RecordBatch:
        _, b, kept, *_ = self._at.tolist()
        found = kept != _NONE
        columns = [[b], [kept], self._best.tolist()]
        return pa.RecordBatch.from_arrays(
            [pa.array(c if found else [], f.type) for c, f in zip(columns, FATES, strict=True)], schema=FATES
        )


@numba.njit(cache=True, nogil=True)
def _new_table(size):  # type: ignore[no-untyped-def]
    return np.full(size, _NONE, np.int64)


@numba.njit(cache=True, nogil=True, inline="always")
def _slot(table, doc):  # type: ignore[no-untyped-def]
    """Where doc is, or the free place where it belongs. The table's size is a power of two."""
    mask = len(table) - 1
    at = np.int64((np.uint64(doc) * _SPREAD) >> _SHIFT) & mask
    while table[at] != _NONE and table[at] != doc:
        at = (at + 1) & mask
    return at


@numba.njit(cache=True, nogil=True)
def _grown(table):  # type: ignore[no-untyped-def]
    larger = _new_table(2 * len(table))
    for doc in table:
        if doc != _NONE:
            larger[_slot(larger, doc)] = doc
    return larger


@numba.njit(cache=True, nogil=True)
def _pass(edges, at, best, gone, doc, kept, similar):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    component, b, a, tie_a, tie_b, similarity = edges
    n = 0
    for i in range(len(b)):
        if b[i] != at[1] or component[i] != at[0]:
            if at[2] != _NONE:
                doc[n], kept[n], similar[n] = at[1], at[2], best[0]
                n += 1
                gone[_slot(gone, at[1])] = at[1]
                at[5] += 1
                if 2 * at[5] > len(gone):
                    gone = _grown(gone)
            if component[i] != at[0]:
                at[0] = component[i]
                if at[5] > 0:
                    gone = _new_table(64)
                    at[5] = 0
            at[1], at[2] = b[i], _NONE
        if gone[_slot(gone, a[i])] == a[i]:
            continue
        better = at[2] == _NONE or similarity[i] > best[0]
        if not better and similarity[i] == best[0]:
            better = (tie_a[i], tie_b[i], a[i]) < (at[3], at[4], at[2])
        if better:
            at[2], at[3], at[4], best[0] = a[i], tie_a[i], tie_b[i], similarity[i]
    return n, gone

"""Batches cut into micro-batches, and filled up to a shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from train.feed.batch import Batch


def batch_rows(batch: Batch, start: int, stop: int) -> Batch:
    """Rows start .. stop - 1 of a batch, as far as it has them."""
    rows = slice(start, stop)
    return replace(
        batch,
        tokens=batch.tokens[rows],
        documents=batch.documents[rows],
        positions=batch.positions[rows],
        loss=batch.loss[rows],
        domains=None if batch.domains is None else batch.domains[rows],
    )


def fill(batch: Batch, rows: int) -> Batch:
    """The batch with that many more rows, in which no target counts."""

    def more(array: Any, value: int) -> Any:
        return np.concatenate([array, np.full((rows, array.shape[1]), value, array.dtype)])

    return replace(
        batch,
        tokens=more(batch.tokens, 0),
        documents=more(batch.documents, -1),
        positions=more(batch.positions, 0),
        loss=more(batch.loss, 0),
        domains=None if batch.domains is None else more(batch.domains, 0),
    )

"""Compile time is paid once, at set-up or by the driver, and never by each worker of each run."""

from __future__ import annotations

import numpy as np

from text import buffers_of
from train.tokenise.pieces import Ids, Offsets, PieceEncoder


def compile() -> None:
    """Run every kernel once on a small text: builds it, or loads it from numba's cache beside the package."""

    def nothing(texts: list[str]) -> tuple[Ids, Offsets]:
        return np.zeros(0, np.uint32), np.zeros(len(texts) + 1, np.int64)

    PieceEncoder(nothing, entries=16, stored_bytes=4096, scan_pieces=16)(*buffers_of(["two words"]))

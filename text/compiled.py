"""Compile time is paid once, at set-up or by the driver, and never by each worker of each run."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from text.ngrams import ngram_hashes
from text.normalised import normalised_hash
from text.words import tokenize


def compile() -> None:
    """Run every kernel once on a small text: builds it, or loads it from numba's cache beside the package."""
    texts = pa.array(["One line, two words.\nAnd \u00e9 \u4e2d\u6587 #1 ...", ""], pa.large_string())
    tokens = tokenize(texts)
    hashes, offsets = tokens.words_only()
    ngram_hashes(hashes, offsets, 3)
    ngram_hashes(np.zeros(1, np.uint64), np.array([0, 1]), 5)
    normalised_hash(texts)

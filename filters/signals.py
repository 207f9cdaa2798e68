"""What is measured of each text: a float64 column a signal, for every text, whatever the rules.

A share or mean of nothing is 0: an empty text has an answer, and no signal is ever null or NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import text
from filters.signals_c4 import C4, measure_c4
from filters.signals_lines import LINES, measure_lines
from filters.signals_words import NGRAMS, WORDS, measure_ngrams, measure_words

MEANINGS: dict[str, str] = {**WORDS, **LINES, **NGRAMS, **C4}
"""Each signal and what it says."""

SIGNALS = pa.schema([(name, pa.float64()) for name in MEANINGS])


def measure_tokens(tokens: text.Tokens) -> pa.RecordBatch:
    """The signals of tokenised texts, a row a text. Linear time; memory beyond the result for the longest text only."""
    parts = [measure_words(tokens), measure_lines(tokens), measure_ngrams(tokens), measure_c4(tokens)]
    columns: list[Any] = [pa.array(np.ascontiguousarray(row)) for part in parts for row in part]
    return pa.RecordBatch.from_arrays(columns, schema=SIGNALS)


def measure(texts: pa.Array | pa.ChunkedArray | Sequence[str]) -> pa.Table:
    """The signals of texts (a list of str or an Arrow array), a row a text in the given order."""
    return pa.Table.from_batches([measure_tokens(text.tokenize(texts))])

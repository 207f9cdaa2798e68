"""Which texts hold items of benchmarks: an index over the items' words, and one linear pass over each text.

Words are folded and symbols left out, over the whole text, so that other line breaks, case and punctuation hide
nothing and filler around an item dilutes nothing: the score is the share of the item that the text has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dedup.benchmarks import Item, item_of
from dedup.items import Prepared, prepare
from dedup.rules import Rules
from dedup.scan import build_table, matches
from text import Tokens, tokenize
from text.buffers import Texts
from text.words import SYMBOL

MATCHES = pa.schema(
    [
        ("row", pa.int64()),
        ("benchmark", pa.string()),
        ("item", pa.string()),
        ("score", pa.float64()),
        ("threshold", pa.float64()),
        ("start", pa.int64()),
        ("end", pa.int64()),
    ]
)


class ContaminationIndex:
    """Finds benchmark items in texts.

    items: dicts with `prompt` (or question, problem ...), and where they have them `answer`, `choices`, `bench`, `id`;
    or `Item`s. settings: those of `Rules`. Building takes about a second for 10,000 items; the index holds about 40
    bytes a word of the prompts. Raises BenchmarkError for an item without a prompt.
    """

    def __init__(self, items: Iterable[Mapping[str, Any] | Item], **settings: Any) -> None:
        self.rules = Rules(**settings)
        self.items = tuple(
            item if isinstance(item, Item) else item_of(item, bench="items", number=number)
            for number, item in enumerate(items)
        )
        self._prepared: Prepared = prepare(self.items, self.rules)
        keys = self._prepared.keys
        bits = max(int(2 * len(keys)).bit_length(), 6)
        self._table = (*build_table(keys, bits), bits)

    @property
    def unusable(self) -> tuple[Item, ...]:
        """Items that cannot be looked for: prompts without a word, and short ones that need an answer and have none."""
        return tuple(self.items[i] for i in self._prepared.unusable)

    def check(self, texts: Texts) -> pa.Table:
        """Table(row, benchmark, item, score, start, end): a row an item found, best first within a text.

        row: position of the text. score: share of the item's telling words that stand close together, 0..1. start,
        end: code points of the text. A text of n words takes time linear in n.
        """
        return self.check_tokens(tokenize(texts)).drop_columns("threshold")

    def check_tokens(self, tokens: Tokens) -> pa.Table:
        """`check` for texts that are tokenised already, with the column `threshold`, which each score reached."""
        prepared = self._prepared
        hashes, offsets = tokens.words_only()
        words = (tokens.word_flags & SYMBOL) == 0
        rows, found, scores, begins, stops = matches(
            tokens.data,
            hashes,
            offsets,
            tokens.word_starts[words],
            tokens.word_ends[words],
            prepared.lengths,
            self.rules.ngram,
            prepared.near,
            self._table,
            prepared.postings,
            prepared.shapes,
            prepared.answers,
        )
        order = np.lexsort((found, -scores, rows))
        rows, found, scores = rows[order], found[order], scores[order]
        starts, ends = _code_points(tokens, rows, begins[order], stops[order])
        columns = [
            rows,
            [self.items[i].bench for i in found],
            [self.items[i].id for i in found],
            scores,
            prepared.required[found],
            starts,
            ends,
        ]
        return pa.Table.from_arrays(
            [pa.array(c, f.type) for c, f in zip(columns, MATCHES, strict=True)], schema=MATCHES
        )


def _code_points(
    tokens: Tokens, rows: npt.NDArray[np.int64], begins: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    starts, ends = np.empty_like(begins), np.empty_like(stops)
    for row in np.unique(rows):
        base, end = tokens.text_offsets[row], tokens.text_offsets[row + 1]
        # How many code points begin before each byte: continuation bytes are 10xxxxxx.
        before = np.r_[0, np.cumsum((tokens.data[base:end] & 0xC0) != 0x80)]
        mine = rows == row
        starts[mine], ends[mine] = before[begins[mine] - base], before[stops[mine] - base]
    return starts, ends

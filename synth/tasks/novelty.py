"""Whether a text is new to a pool of texts, by ROUGE-L against every one of them, without computing most of these.

ROUGE-L (Lin 2004) is 2 L / (m + n), for L the longest common subsequence of two texts of m and n words. L is at most
the size of the words' multiset intersection; an inverted index gives that for the whole pool at once, so that only
pairs which could reach the bound are compared. No pair that reaches it is missed: the decisions are the exact ones.

Words are the project's (`text.tokenize`): folded, in all scripts, where the usual implementation drops every letter
outside a-z; texts in English come out the same but for accents and apostrophes.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from synth.requests import digest

Words = Sequence[int]


def words_of(texts: Sequence[str]) -> list[Words]:
    """Of each text its words, as hashes. Symbols are left out; lone surrogates count as a replacement character."""
    import pyarrow as pa

    from text import tokenize

    if not texts:
        return []
    clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
    hashes, offsets = tokenize(pa.array(clean, pa.large_string())).words_only()
    flat = hashes.tolist()
    return [tuple(flat[start:end]) for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


def common_subsequence(first: Words, second: Words) -> int:
    """Length of the longest common subsequence, a word of the second at a time over all of the first's bits
    (Hyyro 2004, "Bit-parallel LCS-length computation revisited")."""
    where: dict[int, int] = {}
    for at, word in enumerate(first):
        where[word] = where.get(word, 0) | (1 << at)
    full = (1 << len(first)) - 1
    row = full
    for word in second:
        matched = row & where.get(word, 0)
        row = ((row + matched) | (row - matched)) & full
    return len(first) - row.bit_count()


def rouge_l(first: Words, second: Words) -> float:
    """F measure with equal weight, 0 where one has no words."""
    if not first or not second:
        return 0.0
    return 2 * common_subsequence(first, second) / (len(first) + len(second))


class Pool:
    """Texts that new ones are compared with. Memory: about 30 bytes a word (measured on 52,000 texts of 22 words)."""

    def __init__(self, bound: float) -> None:
        self._bound = bound
        self._texts: list[array[int]] = []
        self._lengths = array("l")
        self._postings: dict[tuple[int, int], array[int]] = defaultdict(lambda: array("l"))

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[Words]:
        return iter(self._texts)

    def add(self, words: Words) -> None:
        at = len(self._texts)
        self._texts.append(array("Q", words))
        self._lengths.append(len(words))
        # The k-th occurrence of a word is an element of its own: intersections of sets are those of multisets.
        for word, times in Counter(words).items():
            for occurrence in range(times):
                self._postings[word, occurrence].append(at)

    def nearest(self, words: Words) -> float:
        """ROUGE-L with the first text of the pool that reaches the bound, 0 where none does."""
        for at in self._possible(words):
            likeness = rouge_l(words, self._texts[at])
            if likeness >= self._bound:
                return likeness
        return 0.0

    def _possible(self, words: Words) -> list[int]:
        """Texts whose multiset intersection is large enough, in order."""
        found = [
            np.frombuffer(posting, dtype=np.int_)
            for word, times in Counter(words).items()
            for occurrence in range(times)
            if (posting := self._postings.get((word, occurrence)))
        ]
        if not found:
            return []
        shared: npt.NDArray[np.int64] = np.bincount(np.concatenate(found), minlength=len(self._texts))
        lengths = np.frombuffer(self._lengths, dtype=np.int_)
        # The same division as in rouge_l: it grows with its numerator, rounding included.
        reach = 2 * shared / (len(words) + lengths)
        return [int(at) for at in np.flatnonzero((reach >= self._bound) & (shared > 0))]


def admitted(pool: Pool, texts: Sequence[str]) -> list[str | None]:
    """Puts those of a batch that are new into the pool; for each the reason why not, None for those.

    Of texts alike in the batch the one of the smallest digest goes in: the outcome for each text is the same in
    whatever order they come.
    """
    reasons: list[str | None] = [None] * len(texts)
    words = words_of(texts)
    for at in sorted(range(len(texts)), key=lambda at: (digest(texts[at]), at)):
        if not words[at]:
            reasons[at] = "instruction.no_words"
        elif pool.nearest(words[at]):
            reasons[at] = "novelty.rouge_l"
        else:
            pool.add(words[at])
    return reasons

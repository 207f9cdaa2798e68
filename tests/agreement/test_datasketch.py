"""Our signatures are those of datasketch 2.0's scheme affine32, value for value, over the same shingle hashes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import datasketch
import numpy as np
import pytest

from dedup import signatures
from dedup.sketch import hashes32
from text import ngram_hashes, tokenize


@pytest.mark.parametrize(("permutations", "seed", "ngram"), [(112, 1, 5), (128, 7, 1), (1, 0, 13)])
def test_values_are_those_of_datasketch(permutations: int, seed: int, ngram: int) -> None:
    texts = ["", "one", "one two three four five", " ".join(str(n * n % 97) for n in range(1000)), "... ---"]
    ours = signatures(texts, ngram=ngram, permutations=permutations, seed=seed)
    shingles, offsets = ngram_hashes(*tokenize(texts).words_only(), ngram)
    for number in range(len(texts)):
        theirs = datasketch.MinHash(permutations, seed=seed, hashfunc=int, scheme="affine32")
        theirs.update_batch([int(h) for h in hashes32(shingles[offsets[number] : offsets[number + 1]])])
        assert theirs.hashvalues.dtype == ours.dtype
        assert (theirs.hashvalues == ours[number]).all()


def test_values_agree_on_real_texts(shared: Path) -> None:
    with gzip.open(shared / "near_duplicates" / "spdx_licenses.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for _, line in zip(range(40), lines, strict=False)]
    ours = signatures(texts)
    shingles, offsets = ngram_hashes(*tokenize(texts).words_only(), 5)
    theirs = np.stack(
        [
            m.hashvalues
            for m in datasketch.MinHash.bulk(
                [hashes32(shingles[offsets[n] : offsets[n + 1]]).tolist() for n in range(len(texts))],
                num_perm=112,
                seed=1,
                hashfunc=int,
            )
        ]
    )
    assert (ours == theirs).all()

"""Near-duplicates among real texts: licences with exact similarities, a manual in three languages, licence notices."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dedup import near_duplicates
from dedup.sets import unique_sorted
from dedup.sketch import band_keys, signatures
from text import ngram_hashes, tokenize

Rows = list[dict[str, Any]]


def rows(path: Path) -> Rows:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def licences(shared: Path) -> tuple[Rows, Rows]:
    folder = shared / "near_duplicates"
    return rows(folder / "spdx_licenses.jsonl.gz"), rows(folder / "spdx_pairs_jaccard.jsonl")


def test_our_similarity_is_the_published_one(licences: tuple[Rows, Rows]) -> None:
    # Theirs is over lower-cased words of \w; ours also folds accents, drops runs of underscores, and takes Han one by
    # one, which moves the licences in Chinese and those with blanks to fill in.
    docs, pairs = licences
    values, ends = unique_sorted(*ngram_hashes(*tokenize([doc["text"] for doc in docs]).words_only(), 5))
    sets = {doc["id"]: set(values[ends[n] : ends[n + 1]].tolist()) for n, doc in enumerate(docs)}
    away = [
        abs(len(sets[p["a"]] & sets[p["b"]]) / len(sets[p["a"]] | sets[p["b"]]) - p["jaccard_w5"])
        for p in pairs
        if not p["a"].startswith("Mulan")
    ]
    assert max(away) < 0.01
    assert sum(distance > 6e-5 for distance in away) < 0.05 * len(pairs)


def test_no_pair_below_the_threshold_is_deleted_and_those_above_are_found(licences: tuple[Rows, Rows]) -> None:
    docs, pairs = licences
    table = near_duplicates([doc["text"] for doc in docs], [doc["id"] for doc in docs])
    published = {frozenset((p["a"], p["b"])): p["jaccard_w5"] for p in pairs}
    gone = {row["id"]: row for row in table.to_pylist()}
    for name, row in gone.items():
        assert row["similarity"] >= 0.8
        assert published[frozenset((name, row["kept_id"]))] >= 0.8 - 0.01
    for bound, share in ((0.9, 0.98), (0.8, 0.98)):
        close = [p for p in pairs if p["jaccard_w5"] >= bound]
        assert sum(p["a"] in gone or p["b"] in gone for p in close) >= share * len(close)


def test_bands_find_pairs_as_the_formula_says(licences: tuple[Rows, Rows]) -> None:
    docs, pairs = licences
    number = {doc["id"]: n for n, doc in enumerate(docs)}
    keys = band_keys(signatures([doc["text"] for doc in docs]), 14, 8)
    similar = np.array([p["jaccard_w5"] for p in pairs])
    met = np.array([(keys[number[p["a"]]] == keys[number[p["b"]]]).any() for p in pairs])
    for low in np.arange(0.2, 1.0, 0.1):
        inside = (similar >= low) & (similar < low + 0.1)
        expected = 1 - (1 - similar[inside] ** 8) ** 14
        # Pairs of one family of licences share their luck: three times the error of independent ones.
        error = 3 * np.sqrt((expected * (1 - expected)).sum()) / inside.sum()
        assert met[inside].mean() == pytest.approx(expected.mean(), abs=error + 0.01)


def test_a_manual_for_three_machines_keeps_its_languages_apart(shared: Path) -> None:
    folder = shared / "near_duplicates"
    docs, pairs = rows(folder / "installguide_docs.jsonl.gz"), rows(folder / "installguide_pairs.jsonl")
    table = near_duplicates([doc["text"] for doc in docs], [doc["id"] for doc in docs])
    language = {doc["id"]: doc["lang"] for doc in docs}
    gone = {row["id"]: row["kept_id"] for row in table.to_pylist()}
    # The General Public License is an appendix in English in every translation but the French one.
    crossed = {a.split("/")[-1] for a, b in gone.items() if language[a] != language[b]}
    assert crossed <= {"apf.html"}
    found = Counter((p["label"], p["a"] in gone or p["b"] in gone) for p in pairs if p["lang"] != "ja")
    assert found["exact", False] == found["near", False] == 0


def test_notices_in_the_wild_go_only_for_one_that_is_like_them(shared: Path) -> None:
    docs = rows(shared / "near_duplicates" / "scancode_license_rules.jsonl.gz")
    table = near_duplicates([doc["text"] for doc in docs], [doc["id"] for doc in docs])
    similarity = table.column("similarity").to_numpy()
    assert 800 < table.num_rows < 950
    assert similarity.min() >= 0.8
    assert not set(table.column("kept_id").to_pylist()) & set(table.column("id").to_pylist())

"""MinHash signatures from text: ours, rensa's (with shingling in Python) and datatrove's, one core, same documents.

python -m bench.minhash
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROUNDS = 3
PIECES = 2000
DATATROVE_PIECES = 200
WORDS = 500


def documents() -> list[str]:
    """PIECES pieces of WORDS words from the shared books and manuals."""
    folder = Path(os.environ.get("GRISTMILL_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data" / "text"
    pieces: list[str] = []
    for name in ("books_en", "techdoc_en", "faq_en"):
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            words = " ".join(json.loads(line)["text"] for line in lines).split(" ")
        pieces.extend(" ".join(words[at : at + WORDS]) for at in range(0, WORDS * (PIECES // 3 + 1), WORDS))
    return pieces[:PIECES]


def ours(texts: Sequence[str]) -> None:
    from dedup import signatures

    signatures(texts)


def shingled(text: str) -> list[str]:
    """The word 5-grams of a text, in Python, as rensa wants them."""
    words = text.lower().split()
    return [" ".join(words[at : at + 5]) for at in range(max(len(words) - 4, 1))]


def rensas(texts: Sequence[str]) -> None:
    """RMinHash for a batch, as its README does: full sets, as ours are."""
    from rensa import RMinHash

    RMinHash.from_token_sets([shingled(text) for text in texts], num_perm=112, seed=1)


def rensas_one_by_one(texts: Sequence[str]) -> None:
    """RMinHash text by text, which here is its fastest way."""
    from rensa import RMinHash

    for text in texts:
        RMinHash(num_perm=112, seed=1).update(shingled(text))


def datatroves(texts: Sequence[str]) -> None:
    """MinhashDedupSignature as FineWeb sets it: 14 x 8 over word 5-grams, written to disk."""
    from datatrove.data import Document
    from datatrove.pipeline.dedup import MinhashDedupSignature
    from xxhash import xxh64_intdigest

    with tempfile.TemporaryDirectory() as folder:
        step = MinhashDedupSignature(folder)
        step._hash_func = lambda shingle: xxh64_intdigest(shingle.encode())  # its own wants xxhash < 4
        step.run((Document(text=text, id=str(number)) for number, text in enumerate(texts)), 0, 1)


def seconds(run: Callable[[Sequence[str]], None], texts: Sequence[str]) -> float:
    start = time.thread_time()
    run(texts)
    return (time.thread_time() - start) / len(texts)


def main() -> None:
    texts = documents()
    rivals = {
        "rensa RMinHash.from_token_sets": (rensas, texts, 5.0),
        "rensa RMinHash.update": (rensas_one_by_one, texts, 5.0),
        "datatrove MinhashDedupSignature": (datatroves, texts[:DATATROVE_PIECES], 50.0),
    }
    mine: list[float] = []
    theirs: dict[str, list[float]] = {name: [] for name in rivals}
    for turn in range(ROUNDS + 1):
        measured = seconds(ours, texts)
        others = {name: seconds(run, part) for name, (run, part, _) in rivals.items()}
        if turn:  # the first round warms up
            mine.append(measured)
            for name, value in others.items():
                theirs[name].append(value)
    us = statistics.median(mine)
    for name, (_, _, target) in rivals.items():
        them = statistics.median(theirs[name])
        print(
            f"bench signatures vs {name}: ours {us * 1e6:.1f} us/doc, theirs {them * 1e6:.1f} us/doc, "
            f"ratio {them / us:.1f} (target {target:g})"
        )


if __name__ == "__main__":
    main()

"""The novelty gate of self-instruct against comparing with every text: `python -m bench.synth_novelty [texts]`.

Texts are windows of 8 to 35 words of the shared `text` data (prose, manuals, encyclopedia). Theirs is ROUGE-L of each
new text with the whole pool, as Self-Instruct's published code does it, with our own bit-parallel subsequence: far
faster than the table of the usual package, so that the ratio is what the index alone is worth.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import time
from pathlib import Path

from synth.tasks.novelty import Pool, admitted, rouge_l, words_of

BOUND = 0.7
ASKED = 50
TEXTS = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "text"
FILES = ("books_en", "encyclopedia_en", "techdoc_en", "faq_en")


def windows(count: int) -> list[str]:
    """So many texts, drawn by a fixed seed."""
    words: list[str] = []
    for name in FILES:
        with gzip.open(TEXTS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            words += [word for line in lines for word in json.loads(line)["text"].split()]
    draw = random.Random(1)
    starts = [(draw.randrange(len(words) - 40), draw.randint(8, 35)) for _ in range(count)]
    return [" ".join(words[start : start + length]) for start, length in starts]


def main(count: int = 52_000) -> None:
    texts = windows(count + ASKED)
    words_of(["warm"])
    pool, began = Pool(BOUND), time.process_time()
    for start in range(0, count, 64):
        admitted(pool, texts[start : start + 64])
    grown = time.process_time() - began
    print(f"pool grown from {count} texts to {len(pool)} in {grown:.1f} s of CPU", flush=True)
    new = words_of(texts[count:])
    began = time.process_time()
    ours = [pool.nearest(text) > 0 for text in new]
    ours_seconds = (time.process_time() - began) / ASKED
    began = time.process_time()
    theirs = [any(rouge_l(text, other) >= BOUND for other in pool) for text in new]
    theirs_seconds = (time.process_time() - began) / ASKED
    assert ours == theirs
    print(
        f"bench synth_novelty: ours {ours_seconds * 1e3:.2f} ms, theirs {theirs_seconds * 1e3:.2f} ms, "
        f"ratio {theirs_seconds / ours_seconds:.0f} (target 10)"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

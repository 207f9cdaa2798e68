"""Recall and false positives of decontamination: items of every shared benchmark planted in clean text.

    python -m bench.contamination

Each item goes into a random place of a random clean piece: as it stands, with its answer, re-wrapped, in upper case,
with other punctuation, inside 50,000 words, with one word in 30 changed. Prints recall by benchmark and form, and what
the index finds in 3,000 clean pieces and in the whole of the shared text.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from dedup import ContaminationIndex
from dedup.benchmarks import Item, read_items
from text import tokenize

PIECES, WORDS, LONG_WORDS = 3000, 300, 50_000
SOURCES = ("books_en", "techdoc_en", "encyclopedia_en", "faq_en", "math_en", "code_python")
SHARED = Path(os.environ.get("GRISTMILL_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data"

Form = Callable[[Item, random.Random], str]


def with_answer(item: Item, draw: random.Random) -> str:
    return f"{item.prompt}\n{draw.choice(item.answers)}" if item.answers else item.prompt


def wrapped(item: Item, draw: random.Random) -> str:
    words = with_answer(item, draw).split()
    return "\n".join(" ".join(words[at : at + 8]) for at in range(0, len(words), 8))


def other_punctuation(item: Item, draw: random.Random) -> str:
    return "".join(c if c.isalnum() or c == "_" else " - "[draw.randrange(3)] for c in with_answer(item, draw))


def edited(item: Item, draw: random.Random) -> str:
    words = with_answer(item, draw).split(" ")
    for at in draw.sample(range(len(words)), len(words) // 30):
        words[at] = "changed"
    return " ".join(words)


FORMS: dict[str, Form] = {
    "prompt": lambda item, _: item.prompt,
    "with answer": with_answer,
    "re-wrapped": wrapped,
    "upper case": lambda item, draw: with_answer(item, draw).upper(),
    "punctuation": other_punctuation,
    "edited": edited,
}


def texts_of(name: str) -> list[str]:
    with gzip.open(SHARED / "text" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def pieces(draw: random.Random, count: int, size: int) -> list[str]:
    out = []
    for name in SOURCES:
        words = " ".join(texts_of(name)).split(" ")
        starts = (draw.randrange(len(words) - size) for _ in range(count // len(SOURCES)))
        out.extend(" ".join(words[at : at + size]) for at in starts)
    return out


def planted(item: str, piece: str, draw: random.Random) -> str:
    words = piece.split(" ")
    at = draw.randrange(len(words) + 1)
    return " ".join([*words[:at], item, *words[at:]])


def missed(index: ContaminationIndex, items: list[Item], texts: list[str]) -> list[Item]:
    rows = index.check(texts).to_pylist()
    got = {(row["row"], row["benchmark"], row["item"]) for row in rows}
    return [item for number, item in enumerate(items) if (number, item.bench, item.id) not in got]


def main() -> None:
    draw = random.Random(1)
    items = list(read_items([str(path) for path in sorted((SHARED / "benchmarks").glob("*.jsonl.gz"))]))
    start = time.perf_counter()
    index = ContaminationIndex(items)
    print(f"{len(items)} items, index built in {time.perf_counter() - start:.1f} s, {len(index.unusable)} unusable")
    clean = pieces(draw, PIECES, WORDS)
    totals = Counter(item.bench for item in items)
    lost: dict[str, Counter[str]] = {}
    for name, form in FORMS.items():
        gone = missed(index, items, [planted(form(item, draw), draw.choice(clean), draw) for item in items])
        lost[name] = Counter(item.bench for item in gone)
        if name in ("prompt", "with answer"):
            for item in gone:
                print(f"  {name}: missed {item.bench}/{item.id} of {len(item.prompt.split())} words")
    print(f"{'recall':16}" + "".join(f"{name:>14}" for name in FORMS))
    for bench, total in [*sorted(totals.items()), ("all", len(items))]:
        shares = (1 - (lost[n].total() if bench == "all" else lost[n][bench]) / total for n in FORMS)
        print(f"{bench:16}" + "".join(f"{share:14.4f}" for share in shares))
    sample = draw.sample(items, 300)
    long = pieces(draw, 6, LONG_WORDS)
    gone = missed(index, sample, [planted(with_answer(item, draw), draw.choice(long), draw) for item in sample])
    print(f"bench contamination in {LONG_WORDS} words: recall {1 - len(gone) / len(sample):.4f} (target 1)")
    print(f"bench contamination false positives in {len(clean)} clean pieces: {index.check(clean).num_rows} (target 0)")
    everything = [text for name in (*SOURCES, "techdoc_multilingual") for text in texts_of(name)]
    tokens = tokenize(everything)
    start = time.thread_time()
    found = index.check_tokens(tokens).to_pylist()
    rate = len(tokens.data) / (time.thread_time() - start) / 1e6
    size = len(tokens.data) / 1e6
    print(f"bench contamination in all {size:.0f} MB: {len(found)} found, {rate:.0f} MB/s after tokenising")
    for row in found:
        print(f"  look at: document {row['row']}, {row['benchmark']}/{row['item']} at {row['start']}:{row['end']}")


if __name__ == "__main__":
    main()

"""Arithmetic word problems with known answers, made by a seed: what a small teacher can sometimes solve.

python -m demo.word_problems 200 > problems.jsonl
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

NAMES = (
    "Ada",
    "Bela",
    "Chen",
    "Dora",
    "Emil",
    "Femi",
    "Greta",
    "Hugo",
    "Ines",
    "Jonas",
    "Kemal",
    "Lena",
    "Mira",
    "Noor",
)
GOODS = ("apples", "loaves", "pencils", "marbles", "stamps", "bottles", "candles", "tiles", "books", "seeds")
PLACES = ("at the market", "in the mill", "at school", "in the workshop", "on the farm", "in the garden")

Problem = tuple[str, int, str]


def _added(rng: random.Random) -> Problem:
    a, b = rng.randint(2, 40), rng.randint(2, 40)
    name, goods, place = rng.choice(NAMES), rng.choice(GOODS), rng.choice(PLACES)
    return f"{name} has {a} {goods} and finds {b} more {place}. How many {goods} does {name} have now?", a + b, "add"


def _taken(rng: random.Random) -> Problem:
    b = rng.randint(2, 30)
    a = b + rng.randint(1, 40)
    name, other = rng.sample(NAMES, 2)
    goods = rng.choice(GOODS)
    return f"{name} had {a} {goods} and gave {b} of them to {other}. How many are left?", a - b, "subtract"


def _boxes(rng: random.Random) -> Problem:
    a, b = rng.randint(2, 12), rng.randint(2, 12)
    goods, place = rng.choice(GOODS), rng.choice(PLACES)
    return f"There are {a} boxes {place}, each with {b} {goods}. How many {goods} are there in all?", a * b, "multiply"


def _shared(rng: random.Random) -> Problem:
    people, each = rng.randint(2, 9), rng.randint(2, 12)
    goods = rng.choice(GOODS)
    told = f"{people} friends share {people * each} {goods} equally. How many {goods} does each of them get?"
    return told, each, "divide"


def _two_steps(rng: random.Random) -> Problem:
    a, b, c = rng.randint(2, 9), rng.randint(2, 12), rng.randint(2, 20)
    name, goods = rng.choice(NAMES), rng.choice(GOODS)
    told = f"{name} buys {a} bags of {b} {goods}, and then {c} single ones. How many {goods} has {name} bought?"
    return told, a * b + c, "two_steps"


KINDS: tuple[Callable[[random.Random], Problem], ...] = (_added, _taken, _boxes, _shared, _two_steps)


def problems(count: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Rows of synthesis: id, prompt, gold, verifier, domain, skill, language, licence. No prompt stands twice."""
    rng, seen = random.Random(seed), set[str]()
    while len(seen) < count:
        prompt, gold, skill = KINDS[len(seen) % len(KINDS)](rng)
        if prompt in seen:
            continue
        seen.add(prompt)
        yield {
            "id": f"problem-{len(seen):04d}", "prompt": prompt, "gold": str(gold), "verifier": "math",
            "domain": "arithmetic", "skill": skill, "language": "eng_Latn", "licence": "CC0-1.0",
        }  # fmt: skip


def main() -> int:
    asked = argparse.ArgumentParser(description="Arithmetic word problems with known answers, as JSON lines.")
    asked.add_argument("count", type=int, nargs="?", default=200)
    asked.add_argument("--seed", type=int, default=1)
    told = asked.parse_args()
    for row in problems(told.count, told.seed):
        sys.stdout.write(json.dumps(row) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A small made corpus: unique rows, exact and near copies, short rows; and recipes over it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from jobs import recipe as recipes
from jobs.recipe import Recipe
from jobs.running import Result, run
from shards.store import read_json

WORDS = [
    "mill",
    "grain",
    "stone",
    "water",
    "wheel",
    "flour",
    "river",
    "sack",
    "miller",
    "bread",
    "oven",
    "field",
    "harvest",
    "wind",
    "sail",
    "gear",
    "shaft",
    "hopper",
    "dust",
    "morning",
    "village",
    "road",
    "cart",
    "horse",
    "market",
    "coin",
    "ledger",
    "weight",
    "measure",
    "rye",
    "barley",
    "oat",
    "wheat",
    "season",
    "rain",
    "sluice",
    "dam",
    "pond",
]


def rows(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """`count` rows of 40 to 120 words; every seventh repeats an earlier text, each ninth is one word off an earlier."""
    chance = random.Random(seed)
    made: list[dict[str, Any]] = []
    for number in range(count):
        words = [chance.choice(WORDS) + str(chance.randrange(50)) for _ in range(chance.randrange(40, 120))]
        if number > 20 and number % 7 == 0:
            words = made[chance.randrange(len(made))]["text"].split()
        elif number > 20 and number % 9 == 0:
            words = made[chance.randrange(len(made))]["text"].split()
            words[len(words) // 2] = "other"
        made.append({"id": f"row-{number}", "text": " ".join(words), "stars": number})
    return made


def write_jsonl(path: Path, made: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")


def corpus(folder: Path, *, files: int = 4, count: int = 400, seed: int = 1, shuffled: int | None = None) -> Path:
    """Write the rows over files; `shuffled` deals them in another order to other files."""
    made = rows(count, seed)
    if shuffled is not None:
        random.Random(shuffled).shuffle(made)
    for number in range(files):
        write_jsonl(folder / f"part-{number}.jsonl", made[number::files])
    return folder


STEPS: list[dict[str, Any]] = [
    {"step": "quality", "rules": ["gopher_repetition"]},
    {"step": "exact"},
    {"step": "minhash"},
]


def document(data: Path, out: Path, **changes: Any) -> dict[str, Any]:
    return {
        "name": "made",
        "seed": 5,
        "output": str(out),
        "shard_bytes": 40_000,
        "sources": [{"name": "rows", "format": "jsonl", "paths": [f"{data}/*.jsonl"], "columns": {"stars": "int32"}}],
        "steps": STEPS,
    } | changes


def recipe(data: Path, out: Path, **changes: Any) -> Recipe:
    return recipes.build(document(data, out, **changes))


def mill(data: Path, out: Path, *, workers: int = 2, engine: str = "local", **changes: Any) -> Result:
    return run(recipe(data, out, **changes), workers=workers, engine=engine, quiet=True)


def digests(out: Path) -> dict[str, tuple[str, ...]]:
    """Each step's digests of data, dropped and signals."""
    told = read_json(str(out / "run.json"))
    keys = ("digest", "dropped_digest", "signals_digest")
    return {step["step"]: tuple(step[key] for key in keys) for step in told["steps"]}


def manifests(out: Path) -> dict[str, dict[str, Any]]:
    told = read_json(str(out / "run.json"))
    return {step["step"]: read_json(str(out / step["folder"] / "manifest.json")) for step in told["steps"]}

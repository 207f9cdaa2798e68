"""The loader: tokens a second a core, start-up, and seeking: `python -m bench.loader`.

Shards are made for it: documents of 5 to 40,000 tokens (log-normal, 600 in the middle), 8 domains, 33 million tokens on
local disk in a warm page cache. speed: CPU time of `plan.batch` and `fill` together for consecutive steps of 64 rows of
2,048 tokens, against reading random windows of a memory map (which mixes, packs and isolates nothing) with the same
types. 1 worker: what the training process itself does then. start-up: manifests and plan, up to a loader that could
give its first batch; all that is read is in the page cache. seek: one batch at step 10^7 in a plan that has not made
any other, its files as verified as they would be by then. What waits for no disk takes its CPU time on an idle machine:
by the clock it takes longer on one that others use.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from train.feed.batch import fill
from train.feed.loader import Loader
from train.feed.plan import Plan
from train.feed.token_shards import TokenShards

ROWS, LENGTH, STEPS, ROUNDS = 64, 2048, 100, 5
DOMAINS, SHARDS, SHARD_TOKENS = 8, 32, 1 << 20
PACKINGS = ("concat", "best_fit")
TARGET_TOKENS, TARGET_STARTUP, TARGET_SEEK = 20e6, 1.0, 0.05


def write_shards(folder: Path, shards: int, files: int) -> str:
    """A tokens folder of so many shards in so many files: beyond those, shards are the same files again."""
    random = np.random.default_rng(7)
    written = [_write(folder, number, random) for number in range(files)]
    rows = [written[number % files] | {"domain": f"domain{number * DOMAINS // shards}"} for number in range(shards)]
    told = {
        "kind": "tokens",
        "tokenizer": {"digest": "0" * 32, "vocab_size": 50_000},
        "dtype": "uint16",
        "policy": {"eos_id": 0, "bos_id": None},
        "domains": {},
        "shards": rows,
        "tokens": sum(row["tokens"] for row in rows),
        "documents": sum(row["documents"] for row in rows),
        "ordered_digest": "0" * 32,
    }
    (folder / "manifest.json").write_text(json.dumps(told, indent=1))
    return str(folder)


def _write(folder: Path, number: int, random: np.random.Generator) -> dict[str, Any]:
    lengths = np.clip(random.lognormal(np.log(600), 1.3, SHARD_TOKENS // 300), 5, 40_000).astype(np.int64)
    ends = np.cumsum(lengths)
    ends = ends[: np.searchsorted(ends, SHARD_TOKENS)]
    tokens = random.integers(1, 50_000, ends[-1]).astype("<u2")
    tokens[ends - 1] = 0
    row: dict[str, Any] = {"documents": len(ends), "tokens": len(tokens), "bytes": tokens.nbytes}
    for key, kind, data in (("", "data", tokens.tobytes()), ("ends_", "ends", ends.astype("<u8").tobytes())):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        (folder / kind / f"part-{number:05d}-of-99999.bin").write_bytes(data)
        row |= {f"{key}name": f"{kind}/part-{number:05d}-of-99999.bin", f"{key}digest": xxhash.xxh3_128_hexdigest(data)}
    return row | {"documents_name": f"documents/part-{number:05d}-of-99999.parquet", "documents_digest": "0" * 32}


def plan_of(shards: TokenShards, packing: str) -> Plan:
    return Plan.new(
        shards,
        weights=None,
        sequence_tokens=LENGTH,
        batch_sequences=ROWS,
        seed=1,
        packing=packing,  # type: ignore[arg-type]
    )


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


def windows(shards: TokenShards) -> None:
    """As many tokens from random places of one map: ids to int64, and nothing else."""
    tokens = shards.tokens(0)
    for step in range(STEPS):
        starts = np.random.default_rng(step).integers(0, len(tokens) - LENGTH - 1, ROWS)
        np.stack([tokens[start : start + LENGTH + 1].astype(np.int64) for start in starts])


def speed(shards: TokenShards) -> None:
    count = ROWS * LENGTH * STEPS
    for packing in PACKINGS:
        plan = plan_of(shards, packing)

        def ours(start: int, plan: Plan = plan) -> None:
            for step in range(start, start + STEPS):
                fill(plan.batch(step), shards)

        ours(0)
        times = [
            (cpu_seconds(lambda n=n: ours(n * STEPS)), cpu_seconds(lambda: windows(shards)))  # type: ignore[misc]
            for n in range(1, ROUNDS + 1)
        ]
        mine, theirs = (count / statistics.median(column) for column in zip(*times, strict=True))
        told = f"ours {mine / 1e6:.1f}, random windows {theirs / 1e6:.1f} million tokens/s a core"
        print(
            f"bench loader {packing}: {told}, ratio {mine / theirs:.2f} (target {TARGET_TOKENS / 1e6:.0f})", flush=True
        )
        behind_worker(packing, Loader(plan, shards, stop_step=3 * STEPS, workers=1, prefetch=4))


def behind_worker(packing: str, loader: Loader) -> None:
    """Wall time, and CPU time of the training process alone, from when the worker has begun."""
    batches = iter(loader)
    for _ in range(STEPS):
        next(batches)
    wall, busy = time.perf_counter(), time.process_time()
    count = sum(batch.rows for batch in batches) * LENGTH
    wall, busy = time.perf_counter() - wall, time.process_time() - busy
    told = (
        f"ours {count / wall / 1e6:.1f} million tokens/s by the clock, {count / busy / 1e6:.1f} a second of its own CPU"
    )
    print(f"bench loader {packing}, 1 worker, the training process: {told}", flush=True)


def start_up(folder: str, shards: int) -> None:
    def ours() -> None:
        opened = TokenShards.open(folder)
        Loader(plan_of(opened, "concat"), opened)

    report(f"start-up, {shards:,} shards", [clocked(ours) for _ in range(ROUNDS)], TARGET_STARTUP)


def seek(folder: str, shards: int) -> None:
    opened = TokenShards.open(folder, verify=False)
    for packing in PACKINGS:
        Loader(plan_of(opened, packing), opened).batch(0)
        times = []
        for number in range(ROUNDS):
            loader = Loader(plan_of(opened, packing), opened)
            times.append(clocked(lambda loader=loader, step=10**7 + number * 1009: loader.batch(step)))  # type: ignore[misc]
        report(f"seek to 10^7, {packing}, {shards:,} shards", times, TARGET_SEEK)


def clocked(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock and of this thread's CPU."""
    wall, busy = time.perf_counter(), time.thread_time()
    work()
    return time.perf_counter() - wall, time.thread_time() - busy


def report(name: str, times: list[tuple[float, float]], target: float) -> None:
    wall, busy = (statistics.median(column) * 1e3 for column in zip(*times, strict=True))
    print(
        f"bench loader {name}: ours {wall:.1f} ms by the clock, {busy:.1f} of CPU (target {target * 1e3:.0f})",
        flush=True,
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as work:
        speed(TokenShards.open(write_shards(Path(work, "speed"), SHARDS, SHARDS)))
        for shards in (1_000, 100_000):
            folder = write_shards(Path(work, str(shards)), shards, DOMAINS)
            start_up(folder, shards)
            seek(folder, shards)


if __name__ == "__main__":
    main()

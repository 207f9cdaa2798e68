"""A world whose losses are known, and what measures mixtures in it; as a program, a loop in it."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import xxhash

from mixing.loop.rounds import OWN, Measured
from mixing.loop.running import run
from mixing.loop.settings import Mix
from mixing.observations import Observations, Points

DOMAINS = ("books", "code", "web")
AVAILABLE = {"books": 1e6, "code": 2e6, "web": 7e6}
STRENGTHS = np.array([[1.0, 0.1, 0.3], [0.05, 1.0, 0.1], [0.3, 0.1, 1.0]])


def losses(weights, noise=0.0, seeds=0):
    """[n, 3]: each domain's loss falls with a power of a blend of weights, and a little noise that the seed decides."""
    true = 2 + 0.5 * (np.sqrt(np.asarray(weights)) @ STRENGTHS.T + 0.05) ** -0.5
    drawn = [np.random.default_rng([hash_of(row), int(seed)]).normal(size=3)
             for row, seed in zip(np.atleast_2d(weights), np.broadcast_to(seeds, len(true)), strict=True)]  # fmt: skip
    return true + noise * np.array(drawn)


def hash_of(row):
    return xxhash.xxh3_64_intdigest((np.round(np.asarray(row, np.float64), 9) + 0.0).tobytes()) >> 4


def best(weight_steps=100):
    """The least mean loss on a fine grid, and its weights."""
    grid = np.array(
        [(a, b, weight_steps - a - b) for a in range(weight_steps + 1) for b in range(weight_steps + 1 - a)]
    )
    values = losses(grid / weight_steps).mean(axis=1)
    return float(values.min()), grid[values.argmin()] / weight_steps


class World:
    """Measures a proposal. calls: how many mixtures each call had. fails: whether a mixture fails."""

    def __init__(self, *, noise=0.003, fails=lambda _: False, pause=0.0, log=None):
        self.noise, self.fails, self.pause, self.log, self.calls = noise, fails, pause, log, []

    def __call__(self, proposal: pa.Table) -> Measured:
        domains = [name for name in proposal.column_names if name not in OWN]
        assert sorted(domains) == sorted(DOMAINS)
        weights = np.column_stack([proposal[name].to_numpy() for name in DOMAINS])
        seeds = proposal["seed"].to_numpy()
        self.calls.append(len(weights))
        good = np.array([not self.fails(row) for row in weights])
        for row in weights:
            time.sleep(self.pause)
            if self.log is not None:
                with open(self.log, "a", encoding="utf-8") as file:
                    file.write(json.dumps(row.tolist()) + "\n")
        names = [f"run-{hash_of(row):x}-{seed}" for row, seed in zip(weights, seeds, strict=True)]
        done = Observations.of(
            Points.of(DOMAINS, weights[good].reshape(-1, 3), parameters=1e6, tokens=1e8),
            tuple(f"loss/{name}" for name in DOMAINS),
            losses(weights[good], self.noise, seeds[good]).reshape(-1, 3) if good.any() else np.zeros((0, 3)),
            runs=[name for name, fine in zip(names, good, strict=True) if fine],
            seeds=seeds[good],
            flops=6e14,
        )
        failed = {name: "made to fail" for name, fine in zip(names, good, strict=True) if not fine}
        return Measured(observations=done if good.any() else None, failed=failed)


def settings(**changes):
    return Mix(**{"runs": 24, "first_runs": 12, "batch_runs": 6, "stop_below": 0, "law": "shared_power", **changes})


if __name__ == "__main__":
    out, log, pause = sys.argv[1:]
    told = run(
        settings(), out=out, available=AVAILABLE, measure=World(pause=float(pause), log=log),
        say=lambda line: print(line, flush=True),
    )  # fmt: skip
    print(json.dumps(dict(told.weights)), file=sys.stderr)
    assert Path(out, "mixture.json").exists()

"""The optimum against RegMix's search, under an oracle: `OMP_NUM_THREADS=1 python -m bench.mixing_optimum [seeds]`.

n=64 of RegMix's 512 training runs (1M parameters), five fixed subsets. Ours: `fit` and `optimize`. Theirs: LightGBM
with RegMix's settings, 100,000 mixtures from a Dirichlet distribution with the token shares, and the mean of the 128
with the least prediction; under a cap only of those that keep it (`kept` of them do). The best run: of the 64, where it
keeps the cap. Each mixture is judged by an oracle: a Gaussian process fitted on all 640 runs of 1M that are shared. It
tells losses between runs from the runs around them: differences are of what more runs would tell, not of new training.

avg13, pile_cc: the mean over the 13 domains' losses, and Pile-CC's. cap: no domain above four times its token share.
Ratios are of what is gained on the token shares themselves, so 1 is as much as theirs; below 0 theirs is a loss.
Targets: reference/mixing.md (e), 768 runs behind its oracle, three subsets: avg13 4.643, with the cap 4.650; Pile-CC
5.082 and 5.082.
seconds: CPU of one optimum alone and with everything that explains it, of 17 domains and of 64, made laws included.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.mixing_accuracy import regmix_runs, subset
from mixing.fitting import fit
from mixing.laws import law_class
from mixing.laws.law import Law
from mixing.observations import Observations, Points, pool
from mixing.observations.points import Floats
from mixing.optimum import Constraints, Objective, optimize

RUNS, SEEDS, SAMPLES, MEAN_OF, CAP = 64, range(5), 100_000, 128, 4.0

TOKEN_SHARES = {
    "arxiv": 0.113285273, "freelaw": 0.079608651, "nih_exporter": 0.003913491, "pubmed_central": 0.185375901,
    "wikipedia_en": 0.051081359, "dm_mathematics": 0.015962925, "github": 0.101750772, "philpapers": 0.003707518,
    "stackexchange": 0.066529351, "enron_emails": 0.001750772, "gutenberg_pg_19": 0.027085479, "pile_cc": 0.236869207,
    "ubuntu_irc": 0.01184346, "europarl": 0.007929969, "hackernews": 0.008032956, "pubmed_abstracts": 0.038825953,
    "uspto_backgrounds": 0.046446962,
}  # fmt: skip
"""Of the tokens of RegMix's copy of the Pile: its token_prior.yaml, which it draws the search's mixtures around."""

GOALS = {"avg13": {}, "pile_cc": {"pile_cc": 1.0}}
TARGETS = {("avg13", False): 4.643, ("avg13", True): 4.650, ("pile_cc", False): 5.082, ("pile_cc", True): 5.082}


@dataclass(frozen=True)
class Arm:
    """Oracle losses by seed; kept: share of the sampled mixtures that keep the cap."""

    ours: list[float]
    theirs: list[float]
    best_run: list[float]
    kept: list[float]


@dataclass(frozen=True)
class Oracle:
    law: Law
    shares: Floats

    @classmethod
    def of_all_runs(cls) -> Oracle:
        runs = pool(regmix_runs("train", "1m"), regmix_runs("test", "1m"))
        shares = np.array([TOKEN_SHARES[name] for name in runs.domains])
        return cls(law=law_class("gaussian_process").fit(runs), shares=shares / shares.sum())

    def value(self, goal: str, weights: Floats) -> float:
        told = self.law.mean(Points.of(self.law.domains, weights[None, :], tokens=1e9))
        return float(Objective(weights=GOALS[goal]).value(self.law.metrics, told)[0])


@dataclass(frozen=True)
class Trial:
    """One subset: its runs, the law ours fits, and what the trees predict of the drawn mixtures."""

    oracle: Oracle
    runs: Observations
    law: Law
    drawn: Floats
    told: Floats

    @classmethod
    def of(cls, oracle: Oracle, seed: int, samples: int) -> Trial:
        runs = subset(regmix_runs("train", "1m"), RUNS, seed)
        trees = law_class("lightgbm").fit(runs, seed=seed)
        drawn = np.random.default_rng(seed).dirichlet(oracle.shares, samples)
        told = trees.mean(Points.of(trees.domains, drawn))
        return cls(oracle=oracle, runs=runs, law=fit(runs, seed=seed), drawn=drawn, told=told)

    def judged(self, goal: str, capped: bool) -> tuple[float, float, float, float]:
        """Oracle's losses of ours, theirs and the best run; share of the drawn mixtures that keep the cap."""
        constraints = Constraints(
            prior=dict(zip(self.law.domains, self.oracle.shares.tolist(), strict=True)),
            max_ratio=CAP if capped else None,
        )
        objective = Objective(weights=GOALS[goal])
        found = optimize(self.law, objective, constraints, explain=False)
        polytope = constraints.polytope(self.law.domains)
        assert polytope.contains(found.weights)[0]
        inside = polytope.contains(self.drawn)
        values = objective.value(self.law.metrics, self.told)[inside]
        searched = self.drawn[inside][np.argsort(values, kind="stable")[:MEAN_OF]].mean(axis=0)
        # Published weights are rounded to three decimals.
        feasible = polytope.contains(self.runs.weights, tolerance=1e-3)
        measured = np.where(feasible, objective.value(self.runs.metrics, self.runs.values), np.inf)
        best = self.runs.weights[int(np.argmin(measured))]
        judge = self.oracle.value
        best_run = judge(goal, best) if feasible.any() else np.nan
        return judge(goal, found.weights), judge(goal, searched), best_run, float(inside.mean())


def proposed(oracle: Oracle, seeds: Sequence[int], samples: int = SAMPLES) -> dict[tuple[str, bool], Arm]:
    """By goal and whether there is a cap."""
    trials = [Trial.of(oracle, seed, samples) for seed in seeds]
    arms = {}
    for goal in GOALS:
        for capped in (False, True):
            rows = [trial.judged(goal, capped) for trial in trials]
            arms[goal, capped] = Arm(*(list(column) for column in zip(*rows, strict=True)))
    return arms


def seconds(oracle: Oracle) -> None:
    runs = subset(regmix_runs("train", "1m"), RUNS, 0)
    laws = {"fit of 64 runs, 17 domains": fit(runs), "average with a Gaussian process, 17 domains": fit(
        runs, law=("shared_power", "gaussian_process")
    )}  # fmt: skip
    random = np.random.default_rng(0)
    many = tuple(f"domain-{number:02d}" for number in range(64))
    points = Points.of(many, random.dirichlet(np.full(64, 0.5), 128), tokens=1e9)
    losses = 2 + (points.weights**0.5 @ random.lognormal(0, 1, (64, 13))) ** -0.5
    made = Observations.of(points, [f"loss-{k}" for k in range(13)], losses + 0.002 * random.standard_normal((128, 13)))
    laws["average with a Gaussian process, 64 domains"] = fit(made, law=("shared_power", "gaussian_process"))
    for name, law in laws.items():
        times = []
        for explain in (False, True):
            start = time.process_time()
            optimize(law, None, Constraints(ceilings={law.domains[0]: 0.2}), explain=explain)
            times.append(time.process_time() - start)
        print(f"bench optimum seconds, {name}: {times[0]:.2f} (target 2), explained {times[1]:.2f}", flush=True)


def main() -> None:
    oracle = Oracle.of_all_runs()
    seeds = range(int(sys.argv[1])) if len(sys.argv) > 1 else SEEDS
    arms = proposed(oracle, seeds)
    for (goal, capped), arm in arms.items():
        natural = oracle.value(goal, oracle.shares)
        ours, theirs = float(np.mean(arm.ours)), float(np.mean(arm.theirs))
        best = float(np.nanmean(arm.best_run)) if np.isfinite(arm.best_run).any() else np.nan
        name = f"{goal}, cap {CAP:g}x" if capped else f"{goal}, no cap"
        print(
            f"bench optimum {name}: ours {ours:.4f} (worst {max(arm.ours):.4f}), LightGBM search {theirs:.4f}, "
            f"best run {best:.4f}, token shares {natural:.4f}, kept {np.mean(arm.kept):.0%}, ratio "
            f"{(natural - ours) / (natural - theirs):.2f} (target {TARGETS[goal, capped]})",
            flush=True,
        )
    seconds(oracle)


if __name__ == "__main__":
    main()

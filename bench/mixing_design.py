"""Which runs to make next, measured: `OMP_NUM_THREADS=1 python -m bench.mixing_design [worlds] [stop] [sizes] [pool]`.

worlds: runs until the fit's best mixture has a true loss within .2% of the best there is, in simulated worlds of known
law and noise (tests/mixing/world.py: 8 domains, three metrics, not convex, noise .005 to .05 towards single domains).
Every design has the same fit and optimiser. `even` and `natural` are random: Dirichlet over all mixtures, and around
the natural one as RegMix draws them. `best run` takes the run measured best instead of a fit. Medians of five worlds; a
ratio of a third is the target.
stop: runs when ten more are worth less than .1% of the loss, and by how much the mixture is then off.
sizes: 40 runs of a size sixteen times cheaper and of the target's, against 16 of the target's alone: off by, and cost.
pool: RegMix's 512 training runs as a pool, 24 random ones and then 40 more in batches of 8, four seeds; mean squared
error over 13 domains on 128 test runs of a Gaussian process fitted to them, and how far the best average loss among
them lies above the pool's best. reference/mixing.md: random .0233, .107; greatest variance .0194; expected improvement
.0290, 0.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from bench.mixing_accuracy import rank_correlation, regmix_runs
from mixing.design import worth
from mixing.design.acquisition import ACQUISITIONS, batch, variance_removed
from mixing.design.space_filling import flat_belief
from mixing.design.surrogate import surrogate
from mixing.laws import law_class
from mixing.observations.observations import Observations
from tests.mixing.design.campaigns import EASY, HARD, best_run, campaign, excess, random_design, runs_needed
from tests.mixing.world import world

SEEDS, POOL_SEEDS = range(5), range(4)
COUNTS = (16, 24, 32, 48, 64, 96, 128)
FIRST, LAST, BATCH = 24, 64, 8
SIZES = {"small": (1e6, 1e9), "large": (4e6, 4e9)}


def worlds() -> None:
    needed: dict[str, list[float]] = {"ours": [], "even": [], "natural": [], "best run": []}
    for seed in SEEDS:
        here = world(seed=seed, **HARD)
        curve = [(len(known), excess(here, fitted)) for known, fitted in campaign(here, seed=seed, runs=48)]
        needed["ours"].append(runs_needed(curve))
        for natural, name in ((False, "even"), (True, "natural")):
            fits = list(random_design(here, seed=seed, counts=COUNTS, natural=natural))
            needed[name].append(runs_needed([(len(known), excess(here, fitted)) for known, fitted in fits]))
            if not natural:
                needed["best run"].append(runs_needed([(len(known), best_run(here, known)) for known, _ in fits]))
        print(f"  world {seed}: {', '.join(f'{name} {runs[-1]:.0f}' for name, runs in needed.items())}", flush=True)
    ours = float(np.median(needed["ours"]))
    for name in ("even", "natural", "best run"):
        theirs = float(np.median(needed[name]))
        told = f"more than {COUNTS[-1]}" if np.isinf(theirs) else f"{theirs:.0f}"
        ratio = f"{ours / theirs:.2f}" if np.isfinite(theirs) else f"below {ours / COUNTS[-1]:.2f}"
        print(
            f"bench mixing_design runs to .2%: ours {ours:.0f}, {name} {told}, ratio {ratio} (target .33)", flush=True
        )


def stop() -> None:
    for name, settings in (("easy", EASY), ("hard", HARD)):
        runs, losses = [], []
        for seed in SEEDS:
            here = world(seed=seed, **settings)
            for known, fitted in campaign(here, seed=seed, runs=96, first=16, batch=8):
                told = worth(known, law=fitted, least=0.001 * here.best[1])
                if told.stop:
                    break
            runs.append(len(known) if told.stop else np.inf)
            losses.append(excess(here, fitted))
        print(
            f"bench mixing_design stop, {name} worlds: after {np.median(runs):.0f} runs ({min(runs):.0f} to "
            f"{max(runs):.0f}), off by {np.median(losses):.3%} (at most {max(losses):.3%}) (target .1%)",
            flush=True,
        )


def sizes() -> None:
    off: dict[str, list[tuple[float, float]]] = {"both": [], "large": []}
    large = SIZES["large"]
    for seed in SEEDS:
        here = world(5, seed=seed, bend=0.3, ripple=0.2, noise=0.005, corner_noise=0.05)
        for name, offered, runs in (("both", SIZES, 40), ("large", {"large": large}, 16)):
            first = 20 if name == "both" else 12
            *_, (known, fitted) = campaign(
                here, seed=seed, runs=runs, first=first, batch=4, sizes=offered, target=large
            )
            off[name].append((excess(here, fitted, large), float(known.flops.sum()) / (6 * large[0] * large[1])))
    both, alone = np.median(off["both"], axis=0), np.median(off["large"], axis=0)
    print(
        f"bench mixing_design sizes: both {both[0]:.3%} at the cost of {both[1]:.1f} large runs, large alone "
        f"{alone[0]:.3%} at {alone[1]:.1f}, ratio {both[0] / alone[0]:.2f} (no target)",
        flush=True,
    )


def average(metrics: tuple[str, ...], table: np.ndarray) -> np.ndarray:
    return np.asarray(table.mean(axis=1))


def pool_batch(name: str, runs: Observations, taken: list[int], rng: np.random.Generator) -> list[int]:
    """The next runs of the pool."""
    left = np.setdiff1d(np.arange(len(runs)), taken)
    if name == "random":
        return [int(row) for row in rng.choice(left, BATCH, replace=False)]
    everywhere = np.ones(len(runs), bool)
    cost = np.where(np.isin(np.arange(len(runs)), taken), np.inf, 1.0)
    if name == "space filling":
        belief = flat_belief(runs.weights[left], even=everywhere[left], taken=runs.weights[taken])
        return [int(left[place]) for place in batch(belief, BATCH, variance_removed)[0]]
    known = runs.rows(np.array(taken))
    believed = surrogate(known, law_class("gaussian_process").fit(known), average)
    belief = believed.belief(
        runs.points, cost=cost, target=everywhere, even=everywhere, seen=np.isin(np.arange(len(runs)), taken)
    )
    chosen: list[int] = []
    for _ in range(BATCH):
        value = ACQUISITIONS[name.replace(" ", "_")](belief)
        value[[*taken, *chosen]] = -1
        chosen.append(int(np.argmax(value)))
        belief = belief.measured(chosen[-1])
    return chosen


def pool() -> None:
    runs, test = regmix_runs("train", "1m"), regmix_runs("test", "1m")
    best = float(average(runs.metrics, runs.values).min())
    for name in ("random", "space filling", "variance", "expected improvement", "knowledge gradient"):
        errors, ranks, gaps = [], [], []
        for seed in POOL_SEEDS:
            rng = np.random.default_rng(seed)
            taken = [int(row) for row in rng.choice(len(runs), FIRST, replace=False)]
            while len(taken) < LAST:
                taken += pool_batch(name, runs, taken, rng)
            known = runs.rows(np.array(taken))
            told = law_class("gaussian_process").fit(known).mean(test.points.aligned(known.domains))
            errors.append(float(((told - test.values) ** 2).mean()))
            ranks.append(rank_correlation(told, test.values))
            gaps.append(float(average(known.metrics, known.values).min()) - best)
        print(
            f"bench mixing_design pool, {name}: MSE {np.mean(errors):.4f} (sd {np.std(errors):.4f}), Spearman "
            f"{np.mean(ranks):.4f}, above the pool's best {np.mean(gaps):.4f}",
            flush=True,
        )


PARTS: dict[str, Callable[[], None]] = {"worlds": worlds, "stop": stop, "sizes": sizes, "pool": pool}


def main() -> None:
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()

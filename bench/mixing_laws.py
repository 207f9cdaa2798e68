"""Each fixed-scale law by itself on published runs: `OMP_NUM_THREADS=1 python -m bench.mixing_laws [law ...]`.

regmix: fitted on random n of RegMix's 512 training runs (1M parameters), five fixed seeds (one at n=512), and judged on
the shared test rows: 128 runs of 1M and 256 of 60M parameters. Means over the 13 domains of Spearman's rank correlation
and of mean absolute error, against LightGBM with RegMix's settings on the same runs. Seconds are of one core, CPU time:
the fit of all 13 metrics, and together with predictions held out in 5 folds.
mixinglaws: as bench.mixing_accuracy has it, on the total validation loss and by domain.
Nothing is tuned on the rows that judge. Targets: the probe's figures of reference/mixing.md (for parts_power those of
its best single law at that n, for exponential_published those of its least-squares fit).
"""

from __future__ import annotations

import sys
import time

import numpy as np
import numpy.typing as npt

from bench.mixing_accuracy import (
    PILE_SHARES,
    SEEDS,
    SIZES,
    SPLITS,
    mixinglaws_runs,
    rank_correlation,
    regmix_runs,
    subset,
)
from mixing.laws import law_class
from mixing.laws.law import Law
from mixing.observations.observations import Observations

LAWS = (
    "lightgbm",
    "linear",
    "exponential",
    "exponential_published",
    "additive_power",
    "shared_power",
    "parts_power",
)
FOLDS = 5

TARGETS: dict[str, dict[int, tuple[float, float]]] = {
    "linear": {32: (0.635, 0.547), 64: (0.747, 0.427), 128: (0.794, 0.398), 256: (0.817, 0.389), 512: (0.831, 0.386)},
    "lightgbm": {64: (0.899, 0.206), 128: (0.972, 0.112), 256: (0.985, 0.077), 512: (0.990, 0.060)},
    "exponential": {512: (0.9748, 0.1569)},
    "exponential_published": {
        32: (0.825, 0.660), 64: (0.927, 0.228), 128: (0.961, 0.174), 256: (0.971, 0.155), 512: (0.973, 0.149),
    },
    "additive_power": {
        32: (0.954, 0.162), 64: (0.980, 0.103), 128: (0.986, 0.079), 256: (0.990, 0.069), 512: (0.9906, 0.0663),
    },
    "shared_power": {
        32: (0.971, 0.129), 64: (0.984, 0.087), 128: (0.988, 0.070), 256: (0.989, 0.064), 512: (0.990, 0.062),
    },
    "parts_power": {
        32: (0.971, 0.129), 64: (0.984, 0.087), 128: (0.988, 0.070), 256: (0.991, 0.051), 512: (0.993, 0.043),
    },
}  # fmt: skip
"""Rank correlation and mean absolute error at 1M by number of runs: reference/mixing.md (e)."""

SECONDS_TARGET = 8.0
"""Fit and 5 folds of the 13 metrics at n=512."""


def fitted(name: str, rows: Observations, folds: npt.NDArray[np.int64] | None) -> tuple[Law, float, float]:
    """The law, CPU seconds of its fit, and of it and its held-out predictions (nan without folds)."""
    start = time.process_time()
    law = law_class(name).fit(rows)
    seconds = time.process_time() - start
    if folds is not None:
        law.held_out(rows, folds)
    return law, seconds, time.process_time() - start if folds is not None else float("nan")


def regmix(names: tuple[str, ...]) -> None:
    train, test, large = regmix_runs("train", "1m"), regmix_runs("test", "1m"), regmix_runs("test", "60m")
    for count in SIZES:
        rival = float("nan")
        for name in names:
            told = []
            for seed in SEEDS if count < len(train) else range(1):
                rows = subset(train, count, seed)
                folds = np.random.default_rng(seed).permutation(count) % FOLDS if seed == 0 else None
                law, fit_seconds, all_seconds = fitted(name, rows, folds)
                means, ranked = law.mean(test.points), law.mean(large.points)
                error = float(np.abs(means - test.values).mean())
                correlations = rank_correlation(means, test.values), rank_correlation(ranked, large.values)
                told.append([*correlations, error, fit_seconds, all_seconds])
            rank, rank_large, error, seconds = np.mean(told, axis=0)[:4]
            rival = error if name == "lightgbm" else rival
            wanted = TARGETS.get(name, {}).get(count)
            target = f"target {wanted[0]} and {wanted[1]}" if wanted else "no target"
            print(
                f"bench mixing_laws regmix n={count} {name}: ours {error:.4f}, LightGBM {rival:.4f}, ratio "
                f"{error / rival:.2f}; rank correlation 1M {rank:.4f}, 60M {rank_large:.4f} ({target}); "
                f"{seconds:.2f} s a fit, {told[0][4]:.1f} s with {FOLDS} folds (target {SECONDS_TARGET:.0f})",
                flush=True,
            )


def mixinglaws(names: tuple[str, ...]) -> None:
    for split in SPLITS:
        runs = mixinglaws_runs(split)
        shares = np.array([PILE_SHARES[name] for name in runs.metrics])
        shares /= shares.sum()
        for name in names:
            told = []
            for seed in range(4):
                order = np.random.default_rng(seed).permutation(len(runs))
                rows, rest = runs.rows(np.sort(order[: split.train])), runs.rows(np.sort(order[split.train :]))
                misses = law_class(name).fit(rows).mean(rest.points) - rest.values
                told.append([float(np.abs(misses @ shares).mean()), float(np.abs(misses).mean())])
            total, by_domain = np.mean(told, axis=0)
            print(
                f"bench mixing_laws mixinglaws {split.experiment} {split.size} ({split.train} of {len(runs)}) {name}: "
                f"total {total:.4f}, by domain {by_domain:.4f} (target {split.total} and {split.by_domain})",
                flush=True,
            )


def main() -> None:
    names = tuple(sys.argv[1:]) or LAWS
    regmix(names)
    mixinglaws(tuple(name for name in names if name != "lightgbm"))


if __name__ == "__main__":
    main()

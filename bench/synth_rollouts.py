"""Schedules of rollouts on simulated teachers of known law: `python -m bench.synth_rollouts`.

tempering: share of prompts solved at least once (coverage) and of rollouts that are right (accuracy), of 16 rollouts
in 4 waves, against a fixed temperature of 1 and of 1.5. Six answers a prompt by softmax; of 45% of prompts the
likeliest is right. falls: a teacher whose success goes down with heat, which tempering harms; the figure that tells.
shares: variance of the mean difficulty of 100 prompts by hierarchical shares, of that of equal ones, over 40 sets of
prompts with 50 pilots each, exact but for those; bias of the estimate and of the plain share of right ones, in errors.
stop: rollouts saved by stopping at 4 right ones, of 16 in waves of 4, and right ones kept (4 at most a prompt) of
those that all 16 give; the same with giving up at a chance of .15.
scale: seconds to share out the rollouts of 100,000 prompts.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from synth.rollouts import GiveUp, Rollout, Rollouts, Tempering, allocate, counts, difficulty, heat_effect
from synth.rollouts.allocating import neyman
from synth.rollouts.design import design_of
from synth.rollouts.population import population_of
from tests.synth.rollouts.laws import BUDGETS, POPULATIONS, rolled_out, six_modes, solved

PROMPTS, SETS, DRAWS, STOPPED = 100, 40, 50, 2000
TARGET_SAVED = 0.3


def tempered(prompts: int = 50_000) -> None:
    teacher = six_modes(prompts, 1)
    runs = {
        "tempered": solved(teacher, 2, tempering=Tempering()),
        "fixed 1.0": solved(teacher, 2),
        "fixed 1.5": solved(teacher, 2, temperature=1.5),
    }
    told = {name: ((found > 0).mean(), found.mean() / 16) for name, found in runs.items()}
    for at, what in enumerate(("coverage", "accuracy")):
        ours, cold, hot = (pair[at] for pair in told.values())
        print(
            f"bench rollouts {what}: ours {ours:.3f}, fixed 1.0 {cold:.3f}, ratio {ours / cold:.3f} (target 1); "
            f"fixed 1.5 {hot:.3f}"
        )
    settings = Rollouts(accepted=None, tempering=Tempering())
    usual = heat_effect(rolled_out(settings, np.zeros(4000), 3, six_modes(4000, 1)), settings.wave)
    falling = six_modes(4000, 1, falls=True)
    histories = rolled_out(settings, np.zeros(4000), 3, falling)
    right = sum(counts(one)[0] for one in histories) / (16 * len(histories))
    effect = heat_effect(histories, settings.wave)
    base = solved(falling, 2).mean() / 16
    print(
        f"bench rollouts falls: ours {right:.3f}, fixed 1.0 {base:.3f}, ratio {right / base:.3f} (no target); "
        f"told: {effect.slope:+.3f} +- {effect.standard_error:.3f} a doubling, falls {effect.falls}; of the other "
        f"teacher {usual.slope:+.3f} +- {usual.standard_error:.3f}, falls {usual.falls}"
    )


def shared_out(name: str, budget: int) -> tuple[float, float, float, float]:
    """Variance of that of equal shares, over all sets of prompts and of the worst one; bias of the estimate and of the
    plain share of right ones, in standard errors."""
    design = design_of(budget)
    tried = np.full(PROMPTS, design.pilot)
    means, ours, plain = [], [], []
    for sets in range(SETS):
        draw = np.random.default_rng([budget, len(name), sets])
        chances = POPULATIONS[name](draw, PROMPTS)
        variances = chances * (1 - chances)
        ratios = []
        for at in range(DRAWS):
            pilot = draw.binomial(design.pilot, chances)
            scores = population_of(tried, pilot).variance(tried, pilot)
            rest = neyman(scores, (budget - design.pilot) * PROMPTS, seed=at)
            mass = (variances / rest).sum() / variances.sum()
            ratios.append(budget * (design.weight**2 / design.pilot + (1 - design.weight) ** 2 * mass))
            right = draw.binomial(rest, chances)
            shares = design.weight * pilot / design.pilot + (1 - design.weight) * right / rest
            ours.append(float((shares - chances).mean()))
            plain.append(float(((pilot + right) / (design.pilot + rest) - chances).mean()))
        means.append(float(np.mean(ratios)))
    return float(np.mean(means)), max(means), in_errors(ours), in_errors(plain)


def in_errors(found: list[float]) -> float:
    return float(np.mean(found) / (np.std(found, ddof=1) / np.sqrt(len(found))))


def stopped(name: str) -> None:
    chances = POPULATIONS[name](np.random.default_rng(7), STOPPED)

    def yielded(settings: Rollouts) -> tuple[int, NDArray[np.int64]]:
        histories: list[list[Rollout]] = rolled_out(settings, chances, 1)
        return sum(map(len, histories)), np.array([min(counts(one)[0], 4) for one in histories])

    asked, kept = yielded(Rollouts())
    whole, all_kept = yielded(Rollouts(accepted=None))
    fewer, fewer_kept = yielded(Rollouts(give_up=GiveUp()))
    target = f"target {TARGET_SAVED}" if name in ("uniform", "bimodal") else "no target"
    print(
        f"bench rollouts stop {name}: saved {1 - asked / whole:.3f} ({target}), kept {kept.sum() / all_kept.sum():.4f}"
        f"; with giving up saved {1 - fewer / whole:.3f}, kept {fewer_kept.sum() / all_kept.sum():.4f}, prompts "
        f"covered {(fewer_kept > 0).sum() / (all_kept > 0).sum():.4f}"
    )


def scale(prompts: int = 100_000) -> None:
    chances = POPULATIONS["bimodal"](np.random.default_rng(1), prompts)
    pilots = [(6, int(right)) for right in np.random.default_rng(2).binomial(6, chances)]
    start = time.perf_counter()
    given = allocate(Rollouts(allocation="hbn", mean_rollouts=16, cap=256), pilots, 1)
    seconds = time.perf_counter() - start
    exact = int(given.rollouts.sum()) == 16 * prompts
    tried = np.full(prompts, 6)
    right = np.array([one for _, one in pilots])
    start = time.perf_counter()
    difficulty((tried, right), (given.rollouts - 6, np.minimum(right, given.rollouts - 6)), given.design.weight)
    print(f"bench rollouts scale: {prompts} prompts in {seconds:.3f} s, estimated in "
          f"{time.perf_counter() - start:.3f} s, budget exact {exact}")  # fmt: skip


def main() -> None:
    tempered()
    for name in POPULATIONS:
        chances = POPULATIONS[name](np.random.default_rng(1), 1_000_000)
        variance = chances * (1 - chances)
        bound = 1 - np.sqrt(variance).mean() ** 2 / variance.mean()
        for budget in BUDGETS:
            ratio, worst, ours, plain = shared_out(name, budget)
            print(
                f"bench rollouts shares {name} {budget}: ours {ratio:.3f}, equal 1.000, ratio {ratio:.3f} (target "
                f"1; no shares below {1 - bound:.3f}), worst of {SETS} sets {worst:.3f}; bias {ours:+.1f} errors, of "
                f"plain shares {plain:+.1f}"
            )
    for name in POPULATIONS:
        stopped(name)
    scale()


if __name__ == "__main__":
    main()

"""Laws over scale against published ones on published runs: `python -m bench.mixing_scale`.

Every baseline is fitted in the same run, to the same rows, and held to the same held-out rows; the figure that the
reference measured on its larger copy of the data stands behind it. Errors: mean relative error in percent over 8
losses, all checkpoints (SlimPajama); R2 and mean absolute error of losses below 4 (repetition); mean absolute error
(recalibration). Whole runs are held out, never rows of one.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mixing.fitting import fit
from mixing.laws import law_class
from mixing.laws.law import Law
from mixing.observations import Observations, Points, read_observations
from mixing.observations.points import Floats
from mixing.observations.repetition import effective_tokens
from mixing.scale import choose_by_scale, recalibrate
from mixing.scale.ranks import spearman

ROOT = Path(__file__).resolve().parent.parent
PUBLISHED = ("chinchilla", "joint_additive", "joint_power", "effective_tokens")
SEEDS, DRAWS, MIXTURES = 3, 20, 46
Mask = npt.NDArray[np.bool_]


def folder() -> Path:
    found = Path(os.environ.get("GRISTMILL_SHARED", ROOT.parent / "shared")) / "data" / "mixing"
    if not found.is_dir():
        raise SystemExit(f"bench.mixing_scale: no {found}; set GRISTMILL_SHARED to the shared folder")
    return found


def report(name: str, ours: float, theirs: float, whose: str, target: float | None) -> None:
    ratio = ours / theirs if theirs else np.nan
    wanted = "no target" if target is None else f"target {target}"
    print(f"bench mixing_scale {name}: ours {ours:.4g}, {whose} {theirs:.4g}, ratio {ratio:.2f} ({wanted})", flush=True)


def relative(told: Floats, seen: Floats) -> float:
    return float(np.nanmean(np.abs(told / seen - 1)) * 100)


def mixtures(seen: Observations) -> npt.NDArray[np.int64]:
    return np.asarray(np.unique(seen.weights.round(5), axis=0, return_inverse=True)[1].ravel(), np.int64)


def ranked(law: Law, rest: Observations) -> float:
    """Spearman over mixtures within a scale, mean over scales and losses."""
    told, scales = law.mean(rest.points), np.stack([rest.points.parameters, rest.points.tokens], axis=1)
    which = np.unique(scales, axis=0, return_inverse=True)[1].ravel()
    found = [
        spearman(told[which == scale, column], rest.values[which == scale, column])
        for scale in range(which.max() + 1)
        for column in range(told.shape[1])
    ]
    return float(np.nanmean(found)) if np.isfinite(found).any() else np.nan


def splits(seen: Observations) -> dict[str, tuple[list[tuple[Mask, Mask]], float]]:
    """Name -> pairs of rows to fit and to tell, and the reference's best error there."""
    sizes, which = seen.points.parameters, mixtures(seen)
    some = [
        np.isin(which, np.random.default_rng(seed).permutation(which.max() + 1)[:MIXTURES]) for seed in range(SEEDS)
    ]
    small = sizes < 4e8
    whole = seen.points.tokens / np.array([seen.points.tokens[sizes == size].max() for size in sizes])
    return {
        "new mixtures, same sizes": ([(chosen, ~chosen) for chosen in some], 0.71),
        "937M from at most 680M": ([(sizes < 9e8, sizes > 9e8)], 1.32),
        "680M and 937M from at most 310M and 46 mixtures": ([(small & chosen, ~small) for chosen in some], 2.63),
        "the same, new mixtures only": ([(small & chosen, ~small & ~chosen) for chosen in some], 2.63),
        "ends of 680M and 937M from halves of 310M": ([(small & (whole < 0.55), ~small & (whole > 0.985))], 3.53),
    }


def by_scale() -> None:
    seen = read_observations(folder() / "slimpajama" / "runs.csv")
    for name, (pairs, reference) in splits(seen).items():
        errors: dict[str, list[float]] = {}
        for inside, outside in pairs:
            rest = seen.rows(outside)
            final = rest.points.tokens > 0.985 * np.array(
                [rest.points.tokens[rest.points.parameters == size].max() for size in rest.points.parameters]
            )
            laws: dict[str, Law] = {
                kind: law_class(kind).fit(seen.rows(inside)) for kind in (*PUBLISHED, "joint_shared_power")
            }
            laws["chosen by scale"] = choose_by_scale(seen.rows(inside))
            for kind, law in laws.items():
                told = law.mean(rest.points)
                each = (relative(told, rest.values), relative(told[final], rest.values[final]), ranked(law, rest))
                worst = max(relative(told[:, [k]], rest.values[:, [k]]) for k in range(told.shape[1]))
                errors[kind] = [*errors.get(kind, []), *each, worst]
        print(f"{name}: error % all rows, ends of runs only, rank in a scale, worst metric")
        for kind, figures in errors.items():
            print(f"  {kind:20}" + "".join(f"{np.mean(figures[place::4]):8.3f}" for place in range(4)))
        best = min(float(np.mean(errors[kind][::4])) for kind in PUBLISHED)
        for kind in ("joint_shared_power", "chosen by scale"):
            report(f"{name} ({kind})", float(np.mean(errors[kind][::4])), best, "best published law", reference)


def different(points: Points) -> Floats:
    """[n]: tokens that each run has to see, of one corpus."""
    return np.asarray(np.where(points.weights > 0, points.unique_tokens, 0.0).sum(axis=1))


def muennighoff(points: Points) -> Floats:
    """Published constants, arXiv:2305.16264."""
    unique = different(points)
    used = np.minimum(points.parameters, (521 / 1488) ** (1 / 0.353) * unique)
    parameters = used * (1 - 5.31 * np.expm1(-(points.parameters / used - 1) / 5.31))
    return np.asarray(521 / parameters**0.353 + 1488 / effective_tokens(points.tokens, unique) ** 0.353 + 1.87)


def penalised(constants: Floats, points: Points) -> Floats:
    """The reference's refit: E + A/N^a + B/D'^b + k R^c (N/U)^d; logarithms of the constants, N and D' in billions."""
    e, a, p, b, q, life, k, c, d = np.exp(constants)
    tokens, unique = effective_tokens(points.tokens, different(points), life) / 1e9, different(points)
    repeats = np.maximum(points.tokens / unique - 1, 0.0)
    overfit = k * repeats**c * (points.parameters / unique) ** d
    return np.asarray(e + a * (points.parameters / 1e9) ** -p + b * tokens**-q + overfit)


def refitted(seen: Observations) -> Floats:
    """Constants of `penalised`, by robust least squares in log-loss about the published ones."""
    from scipy.optimize import least_squares

    start = np.log([1.87, 0.35, 0.353, 1.0, 0.353, 15.39, 1e-3, 1.0, 1.0])
    logs = np.log(seen.values[:, 0])
    held = (start - 4, start + 4)
    found = least_squares(
        lambda at: np.log(penalised(at, seen.points)) - logs, start, bounds=held, loss="soft_l1", f_scale=0.02
    )
    return np.asarray(found.x)


def figures(told: Floats, seen: Floats) -> tuple[float, float, float]:
    """R2, mean and median absolute error."""
    errors = np.abs(told - seen)
    return (
        float(1 - (errors**2).sum() / ((seen - seen.mean()) ** 2).sum()),
        float(errors.mean()),
        float(np.median(errors)),
    )


def by_repetition() -> None:
    seen = read_observations(folder() / "repetition" / "datablations.csv").only(["val_loss"])
    values, points = seen.values[:, 0], seen.points
    below = values < 4
    keys = np.stack([points.parameters, points.tokens, different(points)], axis=1)
    which = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
    told, refits = [], []
    for seed in range(SEEDS):
        folds = np.random.default_rng(seed).permutation(which.max() + 1)[which] % 5
        found, refit = np.empty(len(values)), np.empty(len(values))
        for fold in range(5):
            inside, outside = seen.rows(folds != fold), points.rows(folds == fold)
            found[folds == fold] = law_class("repetition").fit(inside).mean(outside)[:, 0]
            refit[folds == fold] = penalised(refitted(inside), outside)
        told.append(found)
        refits.append(refit)
    print(f"repetition: {len(values)} runs, {which.max() + 1} configurations, five folds of them, {SEEDS} times")
    for name, part, targets in (("loss below 4", below, (0.79, 0.126, 0.065)), ("all", values > 0, (None,) * 3)):
        ours = np.mean([figures(each[part], values[part]) for each in told], axis=0)
        theirs = figures(muennighoff(points)[part], values[part])
        again = np.mean([figures(each[part], values[part]) for each in refits], axis=0)
        for place, figure in enumerate(("R2", "MAE", "median")):
            told_as = f"repetition {name} {figure}"
            report(told_as, float(ours[place]), theirs[place], "published constants", targets[place])
            report(told_as, float(ours[place]), float(again[place]), "refitted with a power penalty", targets[place])


def least_squares(told: Floats, seen: Floats) -> tuple[Floats, Floats]:
    slope = ((told - told.mean(0)) * (seen - seen.mean(0))).sum(0) / ((told - told.mean(0)) ** 2).sum(0)
    return seen.mean(0) - slope * told.mean(0), slope


def by_recalibration() -> None:
    at = folder() / "regmix"
    small = read_observations(at / "train_mixture_1m.csv", at / "train_pile_loss_1m.csv")
    large = read_observations(at / "test_mixture_60m.csv", at / "test_pile_loss_60m.csv").only(small.metrics)
    law = fit(small, law=("shared_power", "gaussian_process"))
    told = law.mean(large.points)
    print(f"60M from {len(small)} runs of 1M and k of 60M, {DRAWS} draws; law: {law.why}")
    for count, reference in zip((3, 5, 8, 16, 32), (0.095, 0.080, 0.067, 0.061, 0.058), strict=True):
        ours, theirs, covered = [], [], []
        for seed in range(DRAWS):
            order = np.random.default_rng(seed).permutation(len(large))
            first, rest = order[:count], order[count:]
            mapped = recalibrate(law, large.rows(first))
            seen = large.values[rest]
            ours.append(np.abs(mapped.mean(large.points.rows(rest)) - seen).mean())
            shift, slope = least_squares(told[first], large.values[first])
            theirs.append(np.abs(shift + slope * told[rest] - seen).mean())
            interval = mapped.predict(large.points.rows(rest))
            low, high = (
                np.column_stack([side[name] for name in mapped.metrics]) for side in (interval.low, interval.high)
            )
            covered.append(((low <= seen) & (seen <= high)).mean())
        report(f"recalibration k={count} MAE", float(np.mean(ours)), float(np.mean(theirs)), "least squares", reference)
        print(f"  90 % intervals cover {np.mean(covered):.3f}")


def main() -> None:
    by_repetition()
    by_scale()
    by_recalibration()


if __name__ == "__main__":
    main()

"""Fitting: laws are tried on held-out runs, averaged by what they showed, and the average's errors become intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mixing.fitting.constant import Constant
from mixing.fitting.fitted import Choice, Fitted, signals
from mixing.fitting.grouping import canonical, folds, held_together
from mixing.fitting.intervals import ErrorModel
from mixing.fitting.shares import Shares, stack
from mixing.fitting.support import Support
from mixing.fitting.trials import Trial, candidates, scales, tried
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError
from mixing.single_thread import single_threaded

FEWEST_MIXTURES = 5
"""A metric measured on fewer mixtures is left out where the others are measured on more."""

SAME_VALUE = 1e-9
"""A metric whose range is this share of its size is constant."""


@single_threaded
def fit(
    observations: Observations,
    law: str | Sequence[str] = "auto",
    *,
    metrics: Sequence[str] | None = None,
    level: float = 0.9,
    seed: int = 0,
    workers: int | None = None,
) -> Fitted:
    """A law of the metrics of runs: by itself an average of those laws that tell held-out runs best.

    law: "auto", a law's name as `mixing.laws.LAWS` has it, or several to average. metrics: all where None. level: of
    the intervals that `predict` gives. workers: processes to try laws in (None: this one); the answer is the same for
    any number. A script that asks for several needs the usual `if __name__ == "__main__":`.
    Rows of one run or of one mixture are held out together. Metrics measured nowhere or too seldom are left out, with a
    warning. Raises MixingError where nothing is left, and where no law can be fitted.
    """
    if not 0 < level < 1:
        raise MixingError(f"level: {level} is no probability between 0 and 1; 0.9 is usual")
    if not len(observations):
        raise MixingError("observations: no runs; a law needs at least one")
    asked = law if isinstance(law, str) else tuple(law)
    chosen = observations if metrics is None else observations.only(metrics)
    chosen, unscaled = _of_a_scale(chosen)
    rows = canonical(chosen)
    fold_of = folds(rows, seed=seed)
    kept, warnings = _measured(rows, fold_of)
    rows = rows.only(kept)
    names = candidates(asked, rows)
    levels, varying = _levels(rows)
    live = rows.only([kept[k] for k in varying])
    trials: dict[str, Trial | str] = {}
    if len(varying):
        trials = tried(names, live, fold_of, seed=seed, workers=workers or 1)
    good = {name: trial for name, trial in trials.items() if isinstance(trial, Trial)}
    if len(varying) and not good:
        raise MixingError(f"law: none could be fitted: {'; '.join(str(trial) for trial in trials.values())}")
    shares = _shares(good, live, fold_of)
    held = list(np.flatnonzero((shares.shares > 0).any(axis=1))) if good else []
    laws = [list(good.values())[index] for index in held]
    support = Support.of(rows.points, uses_scale=any(trial.law.uses_scale for trial in laws))
    choice = _choice(trials, shares, live)
    return Fitted(
        domains=observations.domains, metrics=kept, observations=chosen.only(kept), seed=seed, level=level,
        laws=tuple(trial.law for trial in laws), shares=shares.shares[held], levels=levels, varying=varying,
        errors=_errors(good, shares, live, fold_of, support), support=support,
        spread=_spread(live), choice=choice, why=_why(choice, fold_of, live),
        warnings=(*unscaled, *warnings), asked=asked, fold_count=int(fold_of.max()) + 1,
    )  # fmt: skip


def _of_a_scale(rows: Observations) -> tuple[Observations, tuple[str, ...]]:
    """Where runs are of several N and D, those that tell both: a law of scale says nothing of others."""
    told = np.isfinite(rows.points.parameters) & np.isfinite(rows.points.tokens)
    if told.all() or not told.any() or scales(rows) <= 1:
        return rows, ()
    left = int((~told).sum())
    return rows.rows(told), (f"{left} of {len(rows)} runs tell no parameters or no tokens, where others do; left out",)


def _measured(rows: Observations, fold_of: npt.NDArray[np.int64]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The metrics that can be fitted, and a warning for each other one."""
    groups = held_together(rows)
    fewest = min(FEWEST_MIXTURES, (int(groups.max()) + 2) // 2)
    kept, warnings = [], []
    for metric, values in zip(rows.metrics, rows.values.T, strict=True):
        known = np.isfinite(values)
        mixtures = len(np.unique(groups[known]))
        if mixtures >= fewest and (len(np.unique(fold_of[known])) > 1 or len(np.unique(fold_of)) == 1):
            kept.append(metric)
        else:
            told = f"measured on {mixtures} of {int(groups.max()) + 1} mixtures" if mixtures else "measured nowhere"
            warnings.append(f"{metric}: {told}; left out")
    if not kept:
        raise MixingError(f"observations: no metric to fit: {'; '.join(warnings)}")
    return tuple(kept), tuple(warnings)


def _levels(rows: Observations) -> tuple[Floats, npt.NDArray[np.int64]]:
    """[k] mean of each metric, and the indices of those that are not the same in all rows."""
    levels = Constant.fit(rows).level
    low, high = np.nanmin(rows.values, axis=0), np.nanmax(rows.values, axis=0)
    return levels, np.flatnonzero(high - low > SAME_VALUE * np.maximum(np.abs(levels), 1e-300))


def _shares(good: dict[str, Trial], live: Observations, fold_of: npt.NDArray[np.int64]) -> Shares:
    metrics = len(live.metrics)
    if fold_of.max(initial=0) == 0:
        # Nothing can be held out of one run: the plainest law stands.
        plain = np.zeros((len(good), metrics))
        plain[-1:] = 1.0
        return Shares(shares=plain, held_out=plain[None])
    if not good:
        return Shares(shares=np.zeros((0, 0)), held_out=np.zeros((1, 0, 0)))
    return stack(np.stack([trial.means - live.values for trial in good.values()]), fold_of)


def _errors(
    good: dict[str, Trial], shares: Shares, live: Observations, fold_of: npt.NDArray[np.int64], support: Support
) -> ErrorModel | None:
    """Of the average: each row by shares found without its fold."""
    if not good or fold_of.max(initial=0) == 0:
        return None
    means = np.stack([trial.means for trial in good.values()])
    average = np.einsum("lnv,nlv->nv", means, shares.held_out[fold_of])
    used = np.flatnonzero((shares.shares > 0).any(axis=1))
    deviations = [list(good.values())[index].deviations for index in used]
    told = signals(shares.shares[used], means[used], deviations, support.distances_held_out(live.points, fold_of))
    kept = 1 - 1 / (int(fold_of.max()) + 1)
    return ErrorModel.of(live.values - average, told, kept=kept)


def _spread(live: Observations) -> Floats:
    """[v]: range of each metric: what a mixture of unknown domains may differ by."""
    if not live.metrics:
        return np.zeros(0)
    return np.asarray(np.nanmax(live.values, axis=0) - np.nanmin(live.values, axis=0))


def _choice(trials: dict[str, Trial | str], shares: Shares, live: Observations) -> tuple[Choice, ...]:
    rows: list[Choice] = []
    good = [name for name, trial in trials.items() if isinstance(trial, Trial)]
    variance = np.nanvar(live.values, axis=0) if live.metrics else np.zeros(0)
    for name, trial in trials.items():
        for k, metric in enumerate(live.metrics):
            if not isinstance(trial, Trial):
                rows.append(Choice(law=name, metric=metric, error=np.nan, explained=np.nan, share=0.0, why=trial))
                continue
            known = np.isfinite(live.values[:, k])
            square = float(np.mean((trial.means - live.values)[known, k] ** 2))
            share = float(shares.shares[good.index(name), k])
            explained = 1 - square / float(variance[k])
            rows.append(Choice(law=name, metric=metric, error=square**0.5, explained=explained, share=share))
    return tuple(rows)


def _why(choice: tuple[Choice, ...], fold_of: npt.NDArray[np.int64], live: Observations) -> str:
    """What was chosen, by which figures, in a sentence."""
    count = int(fold_of.max()) + 1
    if count == 1:
        return "one run tells no difference between mixtures: the prediction is what was measured"
    if not choice:
        return "every metric is the same in all runs, and so is the prediction"
    names = list(dict.fromkeys(row.law for row in choice))
    spread = np.nanstd(live.values, axis=0)
    told = []
    for name in names:
        mine = [row for row in choice if row.law == name]
        error = float(np.mean([row.error / size for row, size in zip(mine, spread, strict=True)]))
        told.append((float(np.mean([row.share for row in mine])), error, name))
    used = [f"{name} {share:.0%} (error {error:.3f})" for share, error, name in sorted(told, reverse=True) if share > 0]
    left = [f"{name} ({error:.3f})" if np.isfinite(error) else f"{name} (not fitted)"
            for share, error, name in sorted(told, key=lambda row: row[1]) if share == 0]  # fmt: skip
    told_left = f"; without a share: {', '.join(left)}" if left else ""
    way = "shares by metric" if len(used) > 1 else "one law"
    return (
        f"{', '.join(used)}{told_left}; {way}, by {count} folds of held-out runs over {len(live)} rows; errors are "
        "root mean squares in the metrics' standard deviations"
    )

"""Choice among laws in (w, N, D) by what they tell of the largest size that was run, from the smaller ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from mixing.laws import law_class
from mixing.laws.law import Law
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points
from mixing.scale.ranks import spearman

JOINT = ("chinchilla", "joint_additive", "joint_power", "effective_tokens", "joint_shared_power")
FEWEST_SIZES = 3
"""With fewer the rest has one size, and what is told of another is the prior of N's exponent alone."""

FOLDS = 5
NEAR = 1.5
"""Laws with up to so many times the best one's error take part in the average."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ScaleAverage(Law):
    """Laws in (w, N, D), averaged by what they told of held-out runs.

    shares: [l] of laws. names, errors: [c], [c, k] of all candidates: mean relative error of held-out rows, in percent;
    of the average: error [k]; ranks: [c], Spearman over held-out mixtures at one scale, mean over metrics. why: what
    was held out, what was chosen, and on which figures.
    """

    name: ClassVar[str] = "scale_average"
    equation: ClassVar[str] = "L = sum_l a_l L_l(w, N, D)"
    source: ClassVar[str] = "own: shares by error on the largest size, left out; a law alone where that errs less"
    uses_scale: ClassVar[bool] = True

    domains: tuple[str, ...]
    metrics: tuple[str, ...]
    laws: tuple[Law, ...]
    shares: Floats
    names: tuple[str, ...]
    errors: Floats
    ranks: Floats
    error: Floats
    why: str

    @classmethod
    def fit(cls, observations: Observations, *, seed: int = 0) -> Self:
        """As `choose_by_scale` with all joint laws."""
        found = choose_by_scale(observations, seed=seed)
        assert isinstance(found, cls)
        return found

    def mean(self, points: Points) -> Floats:
        return np.asarray(np.tensordot(self.shares, np.stack([law.mean(points) for law in self.laws]), 1))

    def gradient(self, points: Points) -> Floats:
        return np.asarray(np.tensordot(self.shares, np.stack([law.gradient(points) for law in self.laws]), 1))

    @property
    def convex(self) -> npt.NDArray[np.bool_]:
        return np.asarray(np.logical_and.reduce([law.convex for law in self.laws]))

    def deviation(self, points: Points) -> Floats | None:
        """[n, k]: held-out errors (a normal's deviation for their mean size) of the size of what is predicted.

        Of a scale far beyond the largest they are too small: nothing was held out there.
        """
        return np.asarray(np.abs(self.mean(points)) * self.error / 100 * np.sqrt(np.pi / 2))

    def told(self) -> dict[str, Any]:
        return {
            "why": self.why,
            "shares": {law.name: float(share) for law, share in zip(self.laws, self.shares, strict=True)},
            "errors_percent": {
                name: dict(zip(self.metrics, map(float, row), strict=True))
                for name, row in zip(self.names, self.errors, strict=True)
            },
            "laws": {law.name: law.told() for law in self.laws},
        }


def choose_by_scale(observations: Observations, laws: Sequence[str] = JOINT, *, seed: int = 0) -> ScaleAverage:
    """Fit joint laws and choose: with three sizes or more by the largest, left out; with fewer by held-out mixtures.

    The average takes laws near the best, by the inverse square of their errors; where the best alone errs less on what
    was held out, it is taken alone. Raises MixingError where there is one scale, or a law is unknown or of one scale.
    """
    if not laws:
        raise MixingError("laws: none; name at least one of " + ", ".join(JOINT))
    classes = [law_class(name) for name in laws]
    for kind in classes:
        if not kind.uses_scale:
            raise MixingError(f"laws: {kind.name} is of one scale; take some of {', '.join(JOINT)}")
    used = observations.rows(np.isfinite(observations.points.parameters) & np.isfinite(observations.points.tokens))
    sizes = np.unique(used.points.parameters)
    fitted = [kind.fit(used, seed=seed) for kind in classes]
    if len(sizes) >= FEWEST_SIZES:
        outside = used.points.parameters == sizes[-1]
        smaller = used.rows(~outside)
        told = np.stack([kind.fit(smaller, seed=seed).mean(used.points.rows(outside)) for kind in classes])
        seen, how = used.rows(outside), f"of runs of {_count(sizes[-1])} parameters from {len(sizes) - 1} smaller sizes"
    else:
        folds = _folds(used, seed)
        told = np.stack([law.held_out(used, folds, seed=seed)[0] for law in fitted])
        seen, how = used, f"of held-out mixtures at {len(sizes)} size{'s' * (len(sizes) > 1)} (three sizes tell more)"
    return _average(fitted, tuple(laws), told, seen, how)


def _average(fitted: Sequence[Law], names: tuple[str, ...], told: Floats, seen: Observations, how: str) -> ScaleAverage:
    """told: [c, n, k], what each law says of rows that it was not fitted on."""
    errors = np.stack([_errors(each, seen.values) for each in told])
    overall = errors.mean(axis=1)
    best = int(overall.argmin())
    shares = np.where(overall <= NEAR * overall[best], (overall[best] / np.maximum(overall, 1e-12)) ** 2, 0.0)
    shares /= shares.sum()
    together = _errors(np.tensordot(shares, told, 1), seen.values)
    if together.mean() >= overall[best]:
        shares, together = np.eye(len(names))[best], errors[best]
    chosen = np.flatnonzero(shares)
    parts = " + ".join(f"{shares[place]:.0%} {names[place]}" for place in chosen[np.argsort(-shares[chosen])])
    others = ", ".join(f"{names[place]} {overall[place]:.2f} %" for place in np.argsort(overall))
    return ScaleAverage(
        domains=fitted[0].domains,
        metrics=fitted[0].metrics,
        laws=tuple(law for law, share in zip(fitted, shares, strict=True) if share),
        shares=shares[chosen],
        names=names,
        errors=errors,
        ranks=np.array([_ranks(each, seen) for each in told]),
        error=together,
        why=f"{parts}: mean relative error {together.mean():.2f} % {how}; alone: {others}",
    )


def _errors(told: Floats, seen: Floats) -> Floats:
    """[k] mean relative error in percent."""
    return np.asarray(np.nanmean(np.abs(told - seen) / np.abs(seen), axis=0) * 100)


def _ranks(told: Floats, seen: Observations) -> float:
    """Spearman within each scale, averaged over scales and metrics; NaN where no scale has three mixtures."""
    scales = np.stack([seen.points.parameters, seen.points.tokens], axis=1)
    _, which = np.unique(scales, axis=0, return_inverse=True)
    found = [
        spearman(told[which.ravel() == scale, column], seen.values[which.ravel() == scale, column])
        for scale in range(which.max() + 1)
        for column in range(told.shape[1])
    ]
    known = [value for value in found if np.isfinite(value)]
    return float(np.mean(known)) if known else float("nan")


def _folds(observations: Observations, seed: int) -> npt.NDArray[np.int64]:
    """[n]: rows of one mixture, at any scale, are held out together."""
    mixtures = np.round(observations.weights[:, np.argsort(observations.domains)], 6)
    rows, which = np.unique(mixtures, axis=0, return_inverse=True)
    count = min(FOLDS, len(rows))
    if count < 2:
        raise MixingError(
            "choose_by_scale: all runs are of one mixture and fewer than three sizes; give more of either"
        )
    return np.asarray((np.random.default_rng(seed).permutation(len(rows)) % count)[which.ravel()], np.int64)


def _count(number: float) -> str:
    for unit, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.3g}{letter}"
    return f"{number:g}"

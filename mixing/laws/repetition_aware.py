"""Repetition inside a mixture law: any law, asked at the fresh tokens that a mixture's repeated tokens are worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from mixing.laws import law_class
from mixing.laws.law import Law
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points
from mixing.observations.repetition import HALF_LIFE, effective_weights, half_lives

SMALLEST = 1e-12
"""Share of a run's tokens that is worth something, at least: a law's logarithm of tokens needs some."""

STEP = 1e-4
"""Of log-tokens, both ways: a central difference this wide is good to 1e-8 of the slope."""


class RepetitionAware(Law):
    """A law that discounts tokens which a domain repeats: w~_j = w_j D'_j / D_j, at the tokens of the points.

    A law of one scale is asked at the effective weights as they are: they sum to less than 1 where tokens repeat. A law
    in (w, N, D) is asked at the mixture of fresh tokens, w~ / sum w~, and at D sum w~ tokens: for one domain that is
    Muennighoff's law. Points without tokens or unique tokens are asked as they are.

    half_life: R*, repeats after which another one is worth 1/e of fresh tokens: one number, or by domain (others 15.39,
    arXiv:2305.16264; mixtures are reported to bear 15 to 20 repeats of a scarce domain, arXiv:2605.12715).
    """

    name: ClassVar[str] = "repetition_aware"
    equation: ClassVar[str] = "L(w~, N, D),  w~_j = w_j D'_j / D_j,  D' = U + U R* (1 - exp(-R/R*))"
    source: ClassVar[str] = "Muennighoff et al. 2023, arXiv:2305.16264, put inside a mixture law"

    def __init__(self, law: Law, half_life: float | Mapping[str, float] = HALF_LIFE) -> None:
        """Raises MixingError for an unknown domain or a half-life below 0."""
        self.law, self.domains, self.metrics = law, law.domains, law.metrics
        self.half_life = half_lives(law.domains, half_life)
        self.scaled = uses_scale(law)

    @classmethod
    def fit(
        cls,
        observations: Observations,
        *,
        seed: int = 0,
        law: str = "joint_shared_power",
        half_life: float | Mapping[str, float] = HALF_LIFE,
    ) -> Self:
        """Fit a law to runs at what their tokens are worth, where they repeat some. Raises as that law does."""
        kind = law_class(law)
        lives = half_lives(observations.domains, half_life)
        fresh = _fresh(observations.points, lives, kind.uses_scale)[0]
        return cls(kind.fit(replace(observations, points=fresh), seed=seed), half_life)

    def mean(self, points: Points) -> Floats:
        return self.law.mean(_fresh(points, self.half_life, self.scaled)[0])

    def gradient(self, points: Points) -> Floats:
        fresh, slope, worth = _fresh(points, self.half_life, self.scaled)
        inner = self.law.gradient(fresh)
        known = np.isfinite(points.tokens)
        if not self.scaled or not known.any():
            return np.asarray(inner * slope[:, None, :])
        # u = w~ / s and t = D s with s = sum w~: by w~_j, (g_j - sum_i g_i u_i) / s, and the slope by log t over s.
        more, fewer = (self.law.mean(replace(fresh, tokens=fresh.tokens * np.exp(step))) for step in (STEP, -STEP))
        by_log_tokens = np.where(known[:, None], (more - fewer) / (2 * STEP), 0.0)
        along = (inner * fresh.weights[:, None, :]).sum(axis=2)
        whole = (inner + (by_log_tokens - along)[..., None]) / worth[:, None, None]
        return np.asarray(np.where(known[:, None, None], whole, inner) * slope[:, None, :])

    def deviation(self, points: Points) -> Floats | None:
        return self.law.deviation(_fresh(points, self.half_life, self.scaled)[0])

    def held_out(
        self, observations: Observations, folds: npt.NDArray[np.int64], *, seed: int = 0
    ) -> tuple[Floats, Floats | None]:
        fresh = _fresh(observations.points, self.half_life, self.scaled)[0]
        return self.law.held_out(replace(observations, points=fresh), folds, seed=seed)

    def told(self) -> dict[str, Any]:
        lives = {name: float(value) for name, value in zip(self.domains, self.half_life, strict=True)}
        return {"half_life": lives, "law": self.law.name, **self.law.told()}


def uses_scale(law: Law) -> bool:
    """Whether N and D matter to a law, or to one that it is made of."""
    parts = [*getattr(law, "laws", ()), *([law.law] if hasattr(law, "law") else [])]
    return law.uses_scale or any(uses_scale(part) for part in parts)


def _fresh(points: Points, half_life: Floats, scaled: bool) -> tuple[Points, Floats, Floats]:
    """Where the law is asked; [n, m] slope of each effective weight; [n] share of the tokens that is worth something.

    Raises MixingError where no token is worth anything.
    """
    effective, slope = effective_weights(points, half_life)
    worth = effective.sum(axis=1)
    if (worth < SMALLEST).any():
        raise MixingError(
            "unique_tokens: a mixture stands on domains without a token; give weight to domains that have some"
        )
    if scaled:
        # Where tokens are unknown nothing is discounted, and worth is the sum of the weights as they came.
        return replace(points, weights=effective / worth[:, None], tokens=points.tokens * worth), slope, worth
    return replace(points, weights=effective), slope, worth

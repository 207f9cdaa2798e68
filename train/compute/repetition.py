"""What a token is worth when it is seen again, and how many a domain has.

    D' = U + U R* (1 - exp(-R / R*)),  R = D / U - 1 repeats of U unique tokens, R* = 15.39

Source: Muennighoff et al. 2023, arXiv:2305.16264, with its fitted R*. It knows saturation, not over-fitting: past
some 40 epochs real losses rise, so a plan that repeats that often is told so and not trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from train.compute.laws import Floats
from train.compute.numbers import BudgetError, short

REPEATS_OF_TOKENS: Final = 15.387756  # R_D*, repeats after which the value of a further one has fallen to 1/e
REPEATS_OF_PARAMETERS: Final = 5.309743  # R_N*, the same of parameters beyond what the unique tokens can fill
FREE_EPOCHS: Final = 4.0  # up to here a repeat is about as good as a fresh token (the paper's first finding)
SPENT_EPOCHS: Final = 40.0  # the paper finds further epochs worth nothing well before here


def effective(count: Floats | float, unique: float, repeats: float) -> Floats:
    """`count` items of which only `unique` differ, in units of fresh ones."""
    seen = np.asarray(count, dtype=np.float64)
    again = np.maximum(seen / unique - 1.0, 0.0)
    return np.minimum(seen, unique) + unique * repeats * -np.expm1(-again / repeats)


def effective_tokens(tokens: Floats | float, unique: float) -> Floats:
    """Tokens seen, in units of fresh tokens."""
    return effective(tokens, unique, REPEATS_OF_TOKENS)


def value_of_epochs(epochs: float) -> float:
    """Worth of a token, on average over so many epochs, in fresh tokens: 2 -> .984, 4 -> .931, 16 -> .661."""
    return float(effective_tokens(epochs, 1.0)) / epochs


@dataclass(frozen=True)
class Supply:
    """Unique tokens and weight of each domain, in one order; weights sum to 1."""

    domains: tuple[str, ...]
    unique: tuple[float, ...]
    weights: tuple[float, ...]

    @classmethod
    def of(cls, unique_tokens: float | Mapping[str, float], weights: Mapping[str, float] | None) -> Supply:
        """Domains by name. No weights: each domain in proportion to its tokens. Raises BudgetError for a domain that
        has a weight and no tokens."""
        if not isinstance(unique_tokens, Mapping):
            if weights is not None:
                raise BudgetError(
                    "weights: need unique_tokens by domain; give {domain: tokens} beside {domain: weight}"
                )
            return cls(("all",), (unique_tokens,), (1.0,))
        names = tuple(sorted(unique_tokens))
        unknown = sorted(set(weights or {}) - set(names))
        if unknown:
            raise BudgetError(f"weights: no domain {unknown[0]!r}; unique_tokens has {', '.join(names)}")
        given = unique_tokens if weights is None else weights
        total = sum(given.values())
        if not total > 0:
            raise BudgetError("weights: all are 0; at least one domain needs a weight above 0")
        shares = tuple(given.get(name, 0.0) / total for name in names)
        for name, share in zip(names, shares, strict=True):
            if share > 0 and not unique_tokens[name] > 0:
                raise BudgetError(f"weights: domain {name!r} has weight {share:.3g} and no tokens; give it weight 0")
        return cls(names, tuple(float(unique_tokens[name]) for name in names), shares)

    @property
    def total(self) -> float:
        """Unique tokens of the domains that the weights use."""
        return sum(unique for unique, weight in zip(self.unique, self.weights, strict=True) if weight > 0)

    @property
    def once(self) -> float:
        """Tokens at which the first domain has been seen once."""
        return min(unique / weight for unique, weight in zip(self.unique, self.weights, strict=True) if weight > 0)

    @property
    def limit(self) -> float:
        """Fresh tokens that endless repetition is worth."""
        return self.total * (1 + REPEATS_OF_TOKENS)

    def effective(self, tokens: Floats | float) -> Floats:
        """A total of tokens, drawn by the weights, in units of fresh tokens."""
        seen = np.asarray(tokens, dtype=np.float64)
        worth = np.zeros_like(seen)
        for unique, weight in zip(self.unique, self.weights, strict=True):
            if weight > 0:
                worth = worth + effective_tokens(seen * weight, unique)
        return worth

    def tokens_worth(self, fresh: Floats) -> Floats:
        """The total of tokens, repeats among them, worth `fresh` tokens; inf where no repetition is."""
        wanted = np.asarray(fresh, dtype=np.float64)
        reachable = wanted < self.limit * (1 - 1e-12)
        target = np.where(reachable, wanted, 0.0)
        # What tokens are worth rises and is concave in them, so Newton's steps from below never overshoot. Near the
        # limit each leaves 1/e of what was missing, until the last few square the error: 1e-12 takes some 30.
        tokens = target.copy()
        for _ in range(48):
            missing = target - self.effective(tokens)
            if not (missing > 1e-13 * target).any():
                break
            tokens = tokens + np.maximum(missing, 0.0) / self.worth_of_next(tokens)
        return np.where(reachable, tokens, np.inf)

    def worth_of_next(self, tokens: Floats) -> Floats:
        """Worth of one more token after so many: 1 while fresh, then exp(-repeats / R*)."""
        worth = np.zeros_like(tokens)
        for unique, weight in zip(self.unique, self.weights, strict=True):
            if weight > 0:
                again = np.maximum(tokens * weight / unique - 1.0, 0.0)
                worth = worth + weight * np.exp(-again / REPEATS_OF_TOKENS)
        return worth

    def epochs(self, tokens: float) -> tuple[float, ...]:
        """Times that each domain's tokens are seen, on average."""
        return tuple(
            tokens * weight / unique if weight > 0 else 0.0
            for unique, weight in zip(self.unique, self.weights, strict=True)
        )

    def told(self) -> str:
        return f"{short(self.total)} unique tokens"

"""What tokens that are seen again are worth: repeated tokens of a domain as fewer fresh ones, with gradients.

    D' = U + U R* (1 - exp(-R / R*)),   R = D / U - 1 repeats after the first pass;   D' = D up to one pass

D' is concave in D with a continuous slope: 1 up to one epoch, exp(-R / R*) after it.

Source: Muennighoff et al. 2023, arXiv:2305.16264, equation 5 and R*_D = 15.39, fitted on C4 runs to 9B parameters. It
is of one domain alone; scarce domains inside a mixture are reported to bear more (15 to 20 repeats,
arXiv:2605.12715), so every function takes R* by domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mixing.observations.points import Floats, MixingError, Points, by_name

HALF_LIFE = 15.39
"""R*_D: repeats after which another one is worth 1/e of fresh tokens. arXiv:2305.16264."""

TINY = 1e-100
"""Unique tokens up to here are none, so that no quotient overflows."""


def effective_tokens(tokens: float | Floats, unique: float | Floats, half_life: float | Floats = HALF_LIFE) -> Floats:
    """D': the fresh tokens that `tokens` (D) out of `unique` (U) are worth; arrays broadcast.

    U that is NaN or inf is unknown or without end: all tokens count as fresh. half_life 0 makes repeats worthless,
    inf makes them as good as fresh. U = 0 gives 0.
    """
    return _parts(tokens, unique, half_life)[0]


def marginal_value(tokens: float | Floats, unique: float | Floats, half_life: float | Floats = HALF_LIFE) -> Floats:
    """dD'/dD: what one more token is worth after D of U, in fresh tokens: 1 up to one epoch, then falling to 0."""
    return _parts(tokens, unique, half_life)[1]


def next_epoch_value(tokens: float | Floats, unique: float | Floats, half_life: float | Floats = HALF_LIFE) -> Floats:
    """Fresh tokens that one whole further epoch after D of U is worth, as a share of U; NaN where U is not finite."""
    tokens, unique = np.asarray(tokens, np.float64), np.asarray(unique, np.float64)
    gained = effective_tokens(tokens + unique, unique, half_life) - effective_tokens(tokens, unique, half_life)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(np.isfinite(unique), gained / unique, np.nan))


def effective_tokens_gradients(
    tokens: float | Floats, unique: float | Floats, half_life: float | Floats = HALF_LIFE
) -> tuple[Floats, Floats, Floats]:
    """D' by D, by U and by R*: for laws that fit R*, and optima that move with U."""
    _, by_tokens, by_unique, by_half_life = _parts(tokens, unique, half_life)
    return by_tokens, by_unique, by_half_life


def effective_weights(points: Points, half_life: float | Floats = HALF_LIFE) -> tuple[Floats, Floats]:
    """[n, m] w~ = D'_j / D, and dw~_j/dw_j (w~_j depends on w_j alone). half_life: one, or [m] in the points' order.

    w~ is at most w; its rows sum to what share of the run's tokens is worth fresh ones. Where tokens or unique tokens
    are unknown, w~ = w.
    """
    total = np.where(np.isfinite(points.tokens), points.tokens, np.nan)[:, None]
    seen = points.weights * np.nan_to_num(total, nan=1.0)
    unique = np.where(np.isfinite(total), points.unique_tokens, np.inf)
    effective, slope, _, _ = _parts(seen, unique, half_life)
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.where(seen > 0, effective / seen, 1.0)
    return points.weights * worth, slope


def half_lives(domains: Sequence[str], asked: float | Mapping[str, float] = HALF_LIFE) -> Floats:
    """[m] R* in the order of domains: one for all, or by name (the others HALF_LIFE).

    Raises MixingError for an unknown domain or a value below 0.
    """
    told = asked if isinstance(asked, Mapping) else dict.fromkeys(domains, asked)
    found = by_name(domains, told, where="half_life", missing=HALF_LIFE)
    if not (found >= 0).all():
        raise MixingError(f"half_life: {found[~(found >= 0)][0]}; give repeats, 0 or more")
    return found


def _parts(
    tokens: float | Floats, unique: float | Floats, half_life: float | Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """D', and its derivatives by D, U and R*."""
    seen, held, life = np.broadcast_arrays(
        np.asarray(tokens, np.float64), np.asarray(unique, np.float64), np.asarray(half_life, np.float64)
    )
    repeated = np.isfinite(held) & (held > TINY) & (seen > held)
    empty = held <= TINY
    unique_tokens = np.where(repeated, held, 1.0)
    repeats = np.where(repeated, seen / unique_tokens - 1, 0.0)
    # R* of 0 and inf are limits of the formula, told apart: neither may reach the exponential.
    curved = (life > 1e-9) & np.isfinite(life)
    rate = np.where(curved, life, 1.0)
    left = np.where(curved, np.exp(-repeats / rate), np.where(np.isinf(life), 1.0, 0.0))
    gained = np.where(curved, -rate * np.expm1(-repeats / rate), np.where(np.isinf(life), repeats, 0.0))
    effective = np.where(empty, 0.0, np.where(repeated, unique_tokens * (1 + gained), seen))
    by_tokens = np.where(empty, 0.0, np.where(repeated, left, 1.0))
    by_unique = np.where(repeated, 1 + gained - left * (1 + repeats), 0.0)
    by_life = np.where(repeated & curved, unique_tokens * (gained / rate - repeats / rate * left), 0.0)
    return effective, by_tokens, by_unique, by_life

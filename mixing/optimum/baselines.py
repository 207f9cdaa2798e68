"""Mixtures that people use without a law, to hold an optimum against."""

from __future__ import annotations

import numpy as np

from mixing.observations.points import Floats

TEMPERATURES = (0.3, 0.5, 0.7)
"""Exponents of natural shares in common use: mT5 0.3 (arXiv:2010.11934), XLM 0.5 (1901.07291), mBERT 0.7."""

UNIMAX_EPOCHS = 4.0
"""UniMax's cap where max_epochs is not one number: repeats worth about as much as fresh tokens (arXiv:2305.16264)."""


def temperature(natural: Floats, exponent: float) -> Floats:
    """[m]: shares in proportion to natural ** exponent; 0 stays 0."""
    powers = np.where(natural > 0, np.power(np.maximum(natural, 1e-300), exponent), 0.0)
    return np.asarray(powers / powers.sum())


def unimax(unique_tokens: Floats, tokens: float, epochs: float = UNIMAX_EPOCHS) -> Floats:
    """[m]: as even as can be with each domain seen at most `epochs` times in a run of `tokens`.

    Smaller domains that cannot fill an equal part are taken whole, epochs times over, and the rest share what is left.
    Where all together cannot fill the run, each is repeated alike beyond the cap.

    Source: Chung et al. 2023, arXiv:2304.09151, algorithm 1.
    """
    given = np.zeros(len(unique_tokens))
    left = float(tokens)
    order = np.argsort(unique_tokens, kind="stable")
    for place, domain in enumerate(order):
        given[domain] = min(left / (len(order) - place), epochs * unique_tokens[domain])
        left -= given[domain]
    return np.asarray(given / given.sum())


def baselines(unique_tokens: Floats, tokens: float, epochs: float) -> dict[str, Floats]:
    """Those that can be made from what is known, by name. unique_tokens: [m], NaN or inf where unknown."""
    count = len(unique_tokens)
    found = {"uniform": np.full(count, 1 / count)}
    if not np.isfinite(unique_tokens).all() or not (unique_tokens > 0).any():
        return found
    natural = unique_tokens / unique_tokens.sum()
    found["natural"] = natural
    found |= {f"temperature {exponent}": temperature(natural, exponent) for exponent in TEMPERATURES}
    if np.isfinite(tokens):
        found[f"UniMax {epochs:g} epochs"] = unimax(unique_tokens, tokens, epochs)
    return found

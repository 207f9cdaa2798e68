"""Mixtures that people use without a law."""

from __future__ import annotations

import numpy as np
import pytest

from mixing.optimum import temperature, unimax


@pytest.mark.parametrize(
    ("tokens", "epochs", "expected"),
    [
        (30.0, 1.0, [1 / 30, 9 / 30, 20 / 30]),
        (30.0, 100.0, [1 / 3, 1 / 3, 1 / 3]),
        (30.0, 4.0, [4 / 30, 13 / 30, 13 / 30]),
        # All together cannot fill the run: each is repeated alike.
        (1000.0, 2.0, [1 / 110, 9 / 110, 100 / 110]),
    ],
)
def test_unimax_is_as_even_as_its_cap_allows(tokens: float, epochs: float, expected: list[float]) -> None:
    np.testing.assert_allclose(unimax(np.array([1.0, 9.0, 100.0]), tokens, epochs), expected, rtol=1e-12)


def test_temperature_runs_from_even_to_natural() -> None:
    natural = np.array([0.7, 0.3, 0.0])
    np.testing.assert_allclose(temperature(natural, 1.0), natural)
    np.testing.assert_allclose(temperature(natural, 0.0), [0.5, 0.5, 0])
    np.testing.assert_allclose(temperature(natural, 0.5)[0], np.sqrt(0.7) / (np.sqrt(0.7) + np.sqrt(0.3)))

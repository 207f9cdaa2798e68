"""The worth of a mixture's epochs by domain."""

from __future__ import annotations

import numpy as np
import pytest

from mixing.grids import epochs_worth, value_of_repeats
from mixing.observations import MixingError
from mixing.observations.repetition import HALF_LIFE, marginal_value


def test_each_domain_is_told_by_its_epochs() -> None:
    web, code, new, none = value_of_repeats(
        {"web": 0.7, "code": 0.2, "new": 0.1, "none": 0.0},
        tokens=1e9,
        unique_tokens={"web": 7e9, "code": 5e7, "none": 1e6},
        half_life={"code": 5.0},
    )
    assert web.epochs == pytest.approx(0.1)
    assert (web.efficiency, web.marginal) == (1, 1)
    assert code.epochs == pytest.approx(4)
    assert code.effective_tokens == pytest.approx(5e7 * (1 + 5 * (1 - np.exp(-3 / 5))))
    assert code.marginal == pytest.approx(np.exp(-3 / 5))
    assert code.next_epoch == pytest.approx(5 * (np.exp(-3 / 5) - np.exp(-4 / 5)))
    assert (new.unique_tokens, new.epochs, new.next_epoch) == (None, None, None)
    assert new.effective_tokens == pytest.approx(1e8)
    assert (none.epochs, none.efficiency, none.next_epoch) == (0, 1, 1)


@pytest.mark.parametrize("value", [1.0, 0.5, 0.01])
def test_epochs_at_which_a_token_is_worth_that_much(value: float) -> None:
    assert marginal_value(epochs_worth(value), 1.0) == pytest.approx(value)


def test_half_the_worth_of_a_fresh_token_is_left_after_twelve_epochs() -> None:
    assert epochs_worth(0.5) == pytest.approx(11.67, abs=0.01)
    assert epochs_worth(0.5, half_life=0) == 1
    assert epochs_worth(np.exp(-1)) == pytest.approx(1 + HALF_LIFE)


def test_what_means_nothing_is_refused() -> None:
    for value in (0.0, 1.1, float("nan")):
        with pytest.raises(MixingError, match="value"):
            epochs_worth(value)
    with pytest.raises(MixingError, match="half_life"):
        epochs_worth(0.5, half_life=-1)
    with pytest.raises(MixingError, match="length of the run"):
        value_of_repeats({"web": 1}, tokens=float("nan"), unique_tokens={})
    with pytest.raises(MixingError, match="no domain 'wob'"):
        value_of_repeats({"web": 1}, tokens=1, unique_tokens={"wob": 1})

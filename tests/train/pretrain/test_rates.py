"""Schedules against their closed forms."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train.pretrain.rates import decay_steps, rate_factor


@pytest.mark.parametrize(
    ("step", "factor"),
    [
        (0, 0.1),  # 1 / 10: the first update is not wasted
        (8, 0.9),
        (9, 1.0),
        (79, 1.0),
        (80, 1.0),  # the decay's first update is still whole
        (81, 1 - math.sqrt(1 / 20)),
        (85, 0.5),  # r = 1/4
        (99, 1 - math.sqrt(19 / 20)),
        (100, 0.0),
    ],
)
def test_wsd_warms_up_holds_and_decays_by_one_minus_the_root(step: int, factor: float) -> None:
    assert rate_factor(step, steps=100, warmup_steps=10, decay_share=0.2) == pytest.approx(factor, abs=1e-15)


@pytest.mark.parametrize(
    ("shape", "quarter", "half"),
    [("linear", 0.75, 0.5), ("cosine", 0.5 + math.sqrt(2) / 4, 0.5), ("minus_sqrt", 0.5, 1 - math.sqrt(0.5))],
)
def test_shapes_of_the_decay(shape: str, quarter: float, half: float) -> None:
    told = [rate_factor(s, steps=100, warmup_steps=0, decay_share=0.4, decay_shape=shape) for s in (60, 70, 80)]  # type: ignore[arg-type]
    assert told == pytest.approx([1.0, quarter, half])


def test_cosine_falls_from_the_warm_up_to_the_floor() -> None:
    told = [
        rate_factor(s, steps=110, warmup_steps=10, schedule="cosine", final_share=0.1) for s in (4, 10, 60, 85, 110)
    ]
    assert told == pytest.approx([0.5, 1.0, 0.55, 0.1 + 0.9 * (0.5 - math.sqrt(2) / 4), 0.1])


def test_a_decay_takes_the_nearest_number_of_steps() -> None:
    assert [decay_steps(n, 0.1) for n in (0, 4, 5, 14, 15)] == [0, 0, 1, 1, 2]


@given(
    st.integers(1, 300),
    st.integers(0, 400),
    st.floats(0, 1),
    st.sampled_from([("wsd", "linear"), ("wsd", "cosine"), ("wsd", "minus_sqrt"), ("cosine", "linear")]),
    st.floats(0, 1),
)
def test_every_update_has_a_factor_between_the_floor_and_one(
    steps: int, warmup: int, share: float, kind: tuple[str, str], floor: float
) -> None:
    for step in {0, steps // 2, steps - 1}:
        made = rate_factor(
            step,
            steps=steps,
            warmup_steps=warmup,
            schedule=kind[0],  # type: ignore[arg-type]
            decay_share=share,
            decay_shape=kind[1],  # type: ignore[arg-type]
            final_share=floor,
        )
        assert min(floor, (step + 1) / max(warmup, 1)) - 1e-12 <= made <= 1
        assert made > 0

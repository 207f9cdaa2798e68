"""The spike guard: both sides of its thresholds, and that a spike does not move what it is judged by."""

from __future__ import annotations

import json
import math

import pytest

from train.pretrain.guard import Spike, SpikeGuard, Watch

GUARD = SpikeGuard(window_steps=16, threshold=8.0, patience_steps=3, max_rollbacks=1)


def _watch(steps: int = 16) -> Watch:
    """After steps of losses 2.0 +- 0.1 (median 2, MAD 0.1) and norms around 1."""
    watch = Watch(GUARD)
    for step in range(steps):
        assert watch.judge(step, 2.0 + (0.1, -0.1)[step % 2], 1.0) is None
    return watch


def _judged(watch: Watch, values: list[tuple[float, float]], first: int = 16) -> list[Spike | None]:
    return [watch.judge(first + at, loss, norm) for at, (loss, norm) in enumerate(values)]


# 8 deviations of 1.4826 * 0.1 above 2.0 are 3.186; of the norm, 8 * 0.1 in logarithms: exp(0.8) = 2.2255
@pytest.mark.parametrize(
    ("loss", "norm", "spikes"),
    [(3.18, 1.0, False), (3.19, 1.0, True), (2.0, 2.22, False), (2.0, 2.23, True), (0.1, 1e-6, False)],
)
def test_a_value_is_suspect_beyond_the_threshold_and_only_upwards(loss: float, norm: float, spikes: bool) -> None:
    found = _judged(_watch(), [(loss, norm)] * 3)
    assert [one is not None for one in found] == [False, False, spikes]


def test_a_spike_names_its_steps_and_reason() -> None:
    spike = _judged(_watch(), [(2.0, 1.0), (9.0, 1.0), (9.0, 1.0), (9.0, 1.0)])[-1]
    assert spike == Spike(17, 19, "loss 9 against a median of 1.95")  # of 17 good values around 2


def test_one_good_step_between_ends_the_suspicion() -> None:
    assert _judged(_watch(), [(9.0, 1.0), (9.0, 1.0), (2.0, 1.0), (9.0, 1.0), (9.0, 1.0)]) == [None] * 5


@pytest.mark.parametrize(("loss", "norm"), [(math.nan, 1.0), (math.inf, 1.0), (2.0, math.nan), (2.0, math.inf)])
def test_what_is_not_finite_is_a_spike_at_once_and_from_the_first_step(loss: float, norm: float) -> None:
    for steps in (0, 16):
        spike = _judged(_watch(steps), [(loss, norm)], first=steps)[0]
        assert spike is not None
        assert (spike.first, spike.last) == (steps, steps)


def test_the_guard_waits_for_half_a_window() -> None:
    assert _judged(_watch(7), [(99.0, 1.0)] * 3) == [None] * 3
    assert _judged(_watch(8), [(99.0, 1.0)] * 3)[-1] is not None


def test_a_falling_loss_is_never_a_spike() -> None:
    watch = Watch(GUARD)
    assert not any(watch.judge(step, 9.0 * 0.97**step + 2, 1.0) for step in range(200))


def test_a_forgetful_guard_takes_a_new_level_for_normal() -> None:
    watch = _watch()
    watch.forget()
    assert _judged(watch, [(4.0, 3.0)] * 20) == [None] * 20


def test_the_state_is_json_and_judges_on_as_if_never_stopped() -> None:
    values = [(2.0, 1.0), (9.0, 1.0), (9.0, 1.0), (9.0, 1.0)]
    whole = _judged(_watch(), values)
    first = _watch()
    parts = _judged(first, values[:2])
    second = Watch(GUARD)
    second.load(json.loads(json.dumps(first.state())))
    assert parts + _judged(second, values[2:], first=18) == whole

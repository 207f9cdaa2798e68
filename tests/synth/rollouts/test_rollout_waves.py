"""Waves: who is asked again, how hot, and when no more."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as trying
from hypothesis import strategies as st
from pydantic import ValidationError

from synth.errors import SynthError
from synth.rollouts import GiveUp, Rollout, Rollouts, Stop, Tempering, Wave, counts, heat_effect, next_wave
from synth.rollouts.tempering import discounted, target, temperature_at, temperatures
from synth.rollouts.waves import chance_of_right
from synth.verdicts import Outcome
from tests.synth.rollouts.laws import POPULATIONS, rolled_out, six_modes, solved

RIGHT, WRONG = Rollout(outcome=Outcome.RIGHT), Rollout(outcome=Outcome.WRONG)
ERROR, UNSCORED, FAILED = (Rollout(outcome=one) for one in (Outcome.ERROR, Outcome.UNSCORED, None))
CUT = Rollout(outcome=None, truncated=True)


@pytest.mark.parametrize(("reference", "tau", "wanted"), [(1.0, 1.5, 0.5), (0.9, 1.2, 0.25), (0.6, 2.0, 0.4)])
def test_temperature_is_highest_at_0_the_reference_at_the_target_and_lowest_at_1(
    reference: float, tau: float, wanted: float
) -> None:
    found = temperature_at([0.0, wanted, 1.0], wanted, reference, tau)
    assert np.allclose(found, [tau * reference, reference, reference / tau], rtol=0, atol=1e-12)
    steps = temperature_at(np.linspace(0, 1, 101), wanted, reference, tau)
    assert np.all(np.diff(steps) < 0)


def test_counts_are_discounted_by_wave() -> None:
    assert discounted([(4, 0), (1, 3), (0, 4)], 0.95) == pytest.approx((4 * 0.9025 + 0.95, 3 * 0.95 + 4))
    assert discounted([], 0.95) == (0, 0)


def test_target_goes_geometrically_from_the_first_wave_to_the_last() -> None:
    settings = Tempering(targets=(0.25, 0.5))
    assert [target(settings, wave, 3) for wave in range(4)] == pytest.approx([0.25, math.sqrt(0.125), 0.5, 0.5])
    assert target(settings, 0, 1) == 0.5


def test_tempering_heats_what_fails_and_cools_what_succeeds() -> None:
    numbers = np.linspace(0.001, 0.999, 500)
    told = {
        name: temperatures(right, 12 - right, numbers, settings=Tempering(), wave=3, waves=4, reference=1.0)
        for name, right in (("never", 0), ("half", 6), ("always", 12))
    }
    assert told["never"].mean() > 1.35
    assert 0.95 < told["half"].mean() < 1.05
    assert told["always"].mean() < 0.75
    assert all(np.all((found >= 1 / 1.5) & (found <= 1.5)) for found in told.values())


def test_tempering_beats_a_fixed_temperature_on_coverage_and_accuracy_where_a_hotter_one_does_not() -> None:
    teacher = six_modes(20_000, 1)
    fixed, hot = solved(teacher, 2), solved(teacher, 2, temperature=1.5)
    ours = solved(teacher, 2, tempering=Tempering())
    for wanted in ((lambda found: found > 0), (lambda found: found / 16)):
        gain = wanted(ours).astype(float) - wanted(fixed)
        assert gain.mean() > 3 * gain.std() / math.sqrt(len(gain))
    assert (hot > 0).mean() > (fixed > 0).mean()
    assert hot.mean() < fixed.mean()


def test_the_front_door_tempers_as_the_vectorised_law_does() -> None:
    teacher = six_modes(1500, 1)
    histories = rolled_out(Rollouts(accepted=None, tempering=Tempering()), np.zeros(1500), 3, teacher)
    one_by_one = np.array([counts(one)[0] for one in histories])
    at_once = solved(teacher, 2, tempering=Tempering())
    error = math.sqrt((one_by_one.var() + at_once.var()) / 1500)
    assert abs(one_by_one.mean() - at_once.mean()) < 3 * error
    assert all(len(one) == 16 and len({each.temperature for each in one}) == 4 for one in histories)


def test_a_teacher_whose_success_falls_with_heat_is_told_and_another_is_not() -> None:
    settings = Rollouts(accepted=None, tempering=Tempering())
    for falls in (True, False):
        teacher = six_modes(3000, 1, falls=falls)
        effect = heat_effect(rolled_out(settings, np.zeros(3000), 3, teacher), settings.wave)
        assert effect.falls is falls, effect
    assert not heat_effect([], 4).falls
    assert not heat_effect([[RIGHT], [WRONG], [WRONG]], 4).falls


def test_a_seed_repeats_its_temperatures_and_waves_and_seeds_differ() -> None:
    settings = Rollouts(tempering=Tempering())
    history = [replace(WRONG, temperature=1.1)] * 4
    first = next_wave(settings, history, 5)
    assert first == next_wave(settings, history, 5)
    assert first != next_wave(settings, history, 6)
    assert first != next_wave(settings, [], 5)
    assert rolled_out(settings, np.full(20, 0.5), 9) == rolled_out(settings, np.full(20, 0.5), 9)


def test_tempering_goes_by_the_requests_temperature_unless_it_has_its_own() -> None:
    plain = next_wave(Rollouts(tempering=Tempering()), [], 5, temperature=0.5)
    own = next_wave(Rollouts(tempering=Tempering(reference=1.0)), [], 5, temperature=0.5)
    assert isinstance(plain, Wave)
    assert isinstance(own, Wave)
    assert plain.temperatures[0] is not None
    assert own.temperatures[0] == pytest.approx(2 * plain.temperatures[0])
    with pytest.raises(SynthError, match=r"^tempering: the requests' temperature is 0, which nothing heats"):
        next_wave(Rollouts(tempering=Tempering()), [], 5, temperature=0.0)


STOPS = [
    (Rollouts(), [RIGHT] * 3 + [WRONG], None),
    (Rollouts(), [RIGHT] * 4, "accepted"),
    (Rollouts(accepted=None), [RIGHT] * 12, None),
    (Rollouts(accepted=None), [RIGHT] * 16, "cap"),
    (Rollouts(), [ERROR, UNSCORED, FAILED, WRONG] * 4, "cap"),
    (Rollouts(give_up=GiveUp()), [WRONG] * 8, None),
    (Rollouts(give_up=GiveUp()), [WRONG] * 12, "unlikely"),
    (Rollouts(give_up=GiveUp()), [ERROR, UNSCORED, FAILED, WRONG] * 3, None),
    (Rollouts(give_up=GiveUp()), [CUT] * 12, "unlikely"),
    (Rollouts(give_up=GiveUp(), truncated="nothing"), [CUT] * 12, None),
    (Rollouts(give_up=GiveUp()), [RIGHT] + [WRONG] * 11, None),
    (Rollouts(give_up=GiveUp(chance=None, all_wrong=8)), [WRONG] * 7 + [ERROR], None),
    (Rollouts(give_up=GiveUp(chance=None, all_wrong=8)), [WRONG] * 8, "all_wrong"),
    (Rollouts(give_up=GiveUp(chance=None, all_wrong=8)), [RIGHT] + [WRONG] * 11, None),
    (Rollouts(give_up=GiveUp(chance=None, tokens=1000)), [replace(WRONG, tokens=100)] * 4, None),
    (Rollouts(give_up=GiveUp(chance=None, tokens=1000)), [replace(WRONG, tokens=101)] * 4, "dear"),
    (Rollouts(give_up=GiveUp(chance=None, tokens=1000)), [replace(RIGHT, tokens=900)] * 3 + [WRONG], None),
]


@pytest.mark.parametrize(("settings", "history", "reason"), STOPS)
def test_a_prompt_stops_for_one_reason_or_goes_on(
    settings: Rollouts, history: list[Rollout], reason: str | None
) -> None:
    step = next_wave(settings, history, 1)
    assert (step.reason if isinstance(step, Stop) else None) == reason


def test_errors_silence_and_lost_replies_are_neither_right_nor_wrong() -> None:
    assert counts([RIGHT, WRONG, ERROR, UNSCORED, FAILED, CUT]) == (1, 2)
    assert counts([RIGHT, WRONG, ERROR, UNSCORED, FAILED, CUT], "nothing") == (1, 1)
    assert counts([replace(RIGHT, truncated=True)]) == (1, 0)


def test_a_posterior_without_a_right_answer_leaves_the_chance_that_its_docstring_says() -> None:
    assert chance_of_right(0, 12, 4, (0.5, 0.5)) == pytest.approx(0.13, abs=0.005)
    assert chance_of_right(0, 8, 4, (0.5, 0.5)) > 0.15
    assert chance_of_right(0, 0, 1, (1.0, 1.0)) == 0.5


def test_the_last_wave_ends_at_the_cap_and_an_allocation_goes_before_it() -> None:
    assert next_wave(Rollouts(cap=10), [WRONG] * 8, 1) == Wave(temperatures=(None, None))
    assert next_wave(Rollouts(), [RIGHT] * 6, 1, allocated=19) == Wave(temperatures=(None,) * 13)
    assert next_wave(Rollouts(), [WRONG] * 6, 1, allocated=6) == Stop(reason="allocated")
    shared = Rollouts(allocation="hbn", mean_rollouts=8)
    assert next_wave(shared, [], 1, allocated=4) == Wave(temperatures=(None,) * 4)
    with pytest.raises(SynthError, match=r"^rollouts\.allocation: hbn, but this prompt was given no rollouts"):
        next_wave(shared, [], 1)
    assert Stop(reason="dear").gave_up
    assert not Stop(reason="cap").gave_up


@trying(deadline=None)
@given(
    st.lists(st.sampled_from([RIGHT, WRONG, ERROR, UNSCORED, FAILED, CUT]), max_size=40),
    st.integers(1, 9), st.integers(0, 9), st.integers(0, 2**63), st.booleans(),
)  # fmt: skip
def test_any_history_gets_a_wave_within_the_cap_or_a_stop(
    history: list[Rollout], wave: int, more: int, seed: int, tempered: bool
) -> None:
    settings = Rollouts(wave=wave, cap=wave + more, give_up=GiveUp(), tempering=Tempering() if tempered else None)
    step = next_wave(settings, history, seed)
    if isinstance(step, Wave):
        assert 0 < len(step.temperatures) <= wave
        assert len(history) + len(step.temperatures) <= settings.cap
        assert all((told is not None) == tempered for told in step.temperatures)
        assert all(told is None or 1 / 1.5 <= told <= 1.5 for told in step.temperatures)


@pytest.mark.parametrize(("name", "least", "most"), [("uniform", 0.3, 0.5), ("bimodal", 0.3, 0.5), ("hard", 0.0, 0.3)])
def test_stopping_when_enough_are_right_saves_rollouts_and_no_right_answer(
    name: str, least: float, most: float
) -> None:
    chances = POPULATIONS[name](np.random.default_rng(7), 400)
    stopped, whole = rolled_out(Rollouts(), chances, 1), rolled_out(Rollouts(accepted=None), chances, 1)
    kept, all_kept = ([min(counts(one)[0], 4) for one in histories] for histories in (stopped, whole))
    assert kept == all_kept
    assert least <= 1 - sum(map(len, stopped)) / sum(map(len, whole)) < most


MISTAKES = [
    ({"wave": 17}, "wave: above cap"),
    ({"pilot": 4}, "pilot: of allocation hbn alone"),
    ({"allocation": "hbn"}, "mean_rollouts: missing"),
    ({"allocation": "hbn", "mean_rollouts": 17}, "mean_rollouts: above cap"),
    ({"allocation": "hbn", "mean_rollouts": 8, "pilot": 8}, "pilot: not below mean_rollouts"),
    ({"allocation": "hbn", "mean_rollouts": 8, "tempering": {}}, "the estimate needs one temperature"),
    ({"allocation": "hbn", "mean_rollouts": 8, "give_up": {}}, "the estimate needs one temperature"),
    ({"most": 4}, "unexpected"),
    ({"cap": 0}, "greater than or equal to 1"),
    ({"tempering": {"tau": 1.0}}, "greater than 1"),
    ({"tempering": {"targets": (0.0, 0.5)}}, "greater than 0"),
    ({"give_up": {"chance": 1.0}}, "less than 1"),
]


@pytest.mark.parametrize(("told", "message"), MISTAKES)
def test_settings_that_contradict_each_other_are_refused(told: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Rollouts(**told)  # type: ignore[arg-type]


def test_a_pilot_is_asked_for_where_rollouts_are_shared_out_alone() -> None:
    assert Rollouts().pilot_rollouts is None
    assert Rollouts(allocation="hbn", mean_rollouts=16).pilot_rollouts == 6
    assert Rollouts(allocation="hbn", mean_rollouts=16, pilot=3).pilot_rollouts == 3

"""The next wave of a prompt's rollouts, or why there is none: a pure function of settings, history and seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from synth.errors import SynthError
from synth.rollouts.history import Rollout, counts, in_waves
from synth.rollouts.settings import GiveUp, Rollouts

Reason = Literal["accepted", "cap", "allocated", "unlikely", "all_wrong", "dear"]


@dataclass(frozen=True, kw_only=True)
class Wave:
    """Rollouts to ask for together. temperatures: of each; None leaves the requests' own."""

    temperatures: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class Stop:
    """No further wave: accepted, enough are right; cap or allocated, there were as many as may be; or given up:
    unlikely, all_wrong or dear, by the rule of GiveUp's chance, all_wrong or tokens."""

    reason: Reason

    @property
    def gave_up(self) -> bool:
        return self.reason in ("unlikely", "all_wrong", "dear")


def next_wave(
    settings: Rollouts,
    history: Sequence[Rollout],
    seed: int,
    *,
    temperature: float = 1.0,
    allocated: int | None = None,
) -> Wave | Stop:
    """What to do after these rollouts, in the order of asking; those that failed stand in it, too.

    seed: of the item (Desk.seed). temperature: of the requests themselves, which tempering goes by unless it has a
    reference of its own. allocated: rollouts that the prompt gets in all (Desk.rollouts); None follows the settings.
    Raises SynthError where tempering has nothing to heat, a temperature of 0; and where rollouts are to be shared out
    and this prompt was given none.
    """
    asked = len(history)
    if allocated is not None:
        left = allocated - asked
        return Wave(temperatures=(None,) * left) if left > 0 else Stop(reason="allocated")
    if settings.allocation != "each":
        raise SynthError(
            "rollouts.allocation: hbn, but this prompt was given no rollouts; run its pilot, or set allocation: each"
        )
    if reason := _ended(settings, history):
        return Stop(reason=reason)
    size = min(settings.wave - asked % settings.wave, settings.cap - asked)
    return Wave(temperatures=(_temperature(settings, history, seed, temperature),) * size)


def _ended(settings: Rollouts, history: Sequence[Rollout]) -> Reason | None:
    right, wrong = counts(history, settings.truncated)
    if settings.accepted is not None and right >= settings.accepted:
        return "accepted"
    if len(history) >= settings.cap:
        return "cap"
    if settings.give_up is None or not history:
        return None
    return _given_up(settings.give_up, history, (right, wrong), settings.wave)


def _given_up(give_up: GiveUp, history: Sequence[Rollout], found: tuple[int, int], wave: int) -> Reason | None:
    right, wrong = found
    if give_up.all_wrong is not None and not right and wrong >= give_up.all_wrong:
        return "all_wrong"
    if give_up.chance is not None and chance_of_right(right, wrong, wave, give_up.prior) < give_up.chance:
        return "unlikely"
    tokens = sum(one.tokens for one in history) / len(history)
    share = (give_up.prior[0] + right) / (sum(give_up.prior) + right + wrong)
    if give_up.tokens is not None and tokens / share > give_up.tokens:
        return "dear"
    return None


def chance_of_right(right: int, wrong: int, more: int, prior: tuple[float, float]) -> float:
    """Posterior probability that `more` further rollouts have a right one: 1 - B(a, b + more) / B(a, b)."""
    a, b = prior[0] + right, prior[1] + wrong
    none = 1.0
    for drawn in range(more):
        none *= (b + drawn) / (a + b + drawn)
    return 1 - none


def _temperature(settings: Rollouts, history: Sequence[Rollout], seed: int, own: float) -> float | None:
    if (tempering := settings.tempering) is None:
        return None
    from synth.rollouts.tempering import discounted, drawn_number, temperatures

    reference = tempering.reference or own
    if reference <= 0:
        raise SynthError("tempering: the requests' temperature is 0, which nothing heats; give tempering.reference")
    past = [counts(wave, settings.truncated) for wave in in_waves(history, settings.wave)]
    wave = len(history) // settings.wave
    right, wrong = discounted(past, tempering.gamma)
    waves = -(-settings.cap // settings.wave)
    number = drawn_number(seed, wave)
    drawn = temperatures(right, wrong, number, settings=tempering, wave=wave, waves=waves, reference=reference)
    return float(drawn)

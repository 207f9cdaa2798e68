"""Which answer a simulated teacher gives: the skill laws, in closed form, so that tests know what to expect."""

from __future__ import annotations

from typing import Any

from synth.requests import digest
from synth.simulator.settings import Known, Skill


def drawn(*parts: Any) -> float:
    """A number of [0, 1) that depends on the parts alone: not on a process, a platform or what was drawn before."""
    return int(digest(list(parts))[:13], 16) / 16**13


def answers(known: Known, modes: int) -> tuple[str, ...]:
    """The right answer and then the wrong ones, `modes` in all. Made-up ones are near a number, or numbered."""
    wrong = list(dict.fromkeys(one for one in known.wrong if one != known.gold))
    step = 1
    while len(wrong) < modes - 1:
        wrong.append(str(int(known.gold) + step) if _is_integer(known.gold) else f"{known.gold} ({step})")
        step = -step if step > 0 else 1 - step
    return (known.gold, *wrong[: modes - 1])


def _is_integer(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit() and len(text) < 1000


def probabilities(law: Skill, skill: float, temperature: float) -> tuple[float, ...]:
    """Of the right answer and each wrong one at a temperature; they sum to 1.

    At temperature 1 every law gives the right one its skill; wrong ones share the rest geometrically, by `spread`.
    modes: p_i ** (1 / T) over their sum, that is the softmax of log p_i at T; at 0 the likeliest for certain.
    """
    shares = [law.spread**at for at in range(law.modes - 1)]
    base = [skill, *(share * (1 - skill) / sum(shares) for share in shares)]
    if law.law == "modes":
        # The likeliest has the weight 1: no power of a small number underflows all of them.
        power = 1 / max(temperature, 1e-3)
        weights = [(p / max(base)) ** power for p in base]
        return tuple(weight / sum(weights) for weight in weights)
    right = skill**temperature if law.law == "falls" else skill
    return (right, *(share * (1 - right) / sum(shares) for share in shares))


def pick(chances: tuple[float, ...], number: float) -> int:
    """The index whose part of [0, 1) holds the number."""
    total = 0.0
    for at, chance in enumerate(chances):
        total += chance
        if number < total:
            return at
    return max(range(len(chances)), key=chances.__getitem__)

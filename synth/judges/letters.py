"""Which of two answers is better, of the probabilities of the letters A and B: Constitutional AI's preference."""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, Final

from synth.judges.judging import Judge, Opinion, fence
from synth.judges.pairwise import Pair
from synth.prompts import render
from synth.replies import Failure, Reply
from synth.requests import Request, Sampling

ALTERNATIVES: Final = 20
"""Asked for at each token: the most that OpenAI's interface gives, and vLLM's default limit."""


def lean(
    judge: Judge,
    pairs: Sequence[Pair],
    *,
    template: str = "judge_letter",
    bounds: tuple[float, float] = (0.0, 1.0),
    alternatives: int = ALTERNATIVES,
) -> Generator[Sequence[Request], Any, list[Opinion[float]]]:
    """The probability that the first answer is better: p(A) / (p(A) + p(B)), the mean over both orders.

    bounds: it is clipped to; Constitutional AI (arXiv:2212.08073, section 4.1) has .4 to .6 where a judge reasons
    first. Unscored where a backend gives no log-probabilities, or neither letter is among the alternatives of a
    letter's place. Nothing is asked again: the probabilities would be the same.
    """
    sampling = Sampling(temperature=judge.temperature, max_tokens=judge.max_tokens, logprobs=alternatives)
    requests = [
        Request(
            messages=render(
                template, question=pair.question, first=first, second=second, fence=fence(pair.question, first, second)
            ),
            sampling=sampling,
            teacher=judge.teacher,
        )
        for pair in pairs
        for first, second in ((pair.first, pair.second), (pair.second, pair.first))
    ]
    if not requests:
        return []
    replies = yield requests
    return [_opinion(forward, backward, bounds) for forward, backward in zip(replies[::2], replies[1::2], strict=True)]


def _opinion(forward: Reply | Failure, backward: Reply | Failure, bounds: tuple[float, float]) -> Opinion[float]:
    keys = (forward.key, backward.key)
    if isinstance(forward, Failure) or isinstance(backward, Failure):
        return Opinion(value=None, reason="failed", keys=keys)
    one, other = probability_of_first(forward.logprobs), probability_of_first(backward.logprobs)
    if one is None or other is None:
        return Opinion(value=None, reason="no_probabilities", keys=keys)
    value = Opinion(value=(one + 1 - other) / 2, keys=keys)
    return replace(value, value=min(max(value.value or 0.0, bounds[0]), bounds[1]))


def probability_of_first(logprobs: str) -> float | None:
    """p(A) / (p(A) + p(B)) at the first token that is one of the letters, of a reply's log-probabilities as OpenAI's
    two interfaces give them; None where there is none."""
    try:
        tokens = _alternatives(json.loads(logprobs))
        for chosen, given in tokens:
            if _letter(chosen):
                chances = {"A": 0.0, "B": 0.0}
                for token, value in given:
                    if letter := _letter(token):
                        chances[letter] += math.exp(min(float(value), 0.0))
                total = chances["A"] + chances["B"]
                return chances["A"] / total if total > 0 else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return None


def _letter(token: str) -> str:
    bare = token.strip().strip("()*`\"'.:").strip()
    return bare if bare in ("A", "B") else ""


def _alternatives(given: Any) -> list[tuple[str, list[tuple[str, float]]]]:
    """For each token, it and its alternatives with their log-probabilities."""
    if "content" in given:
        return [
            (one["token"], [(each["token"], each["logprob"]) for each in one["top_logprobs"] or [one]])
            for one in given["content"] or []
        ]
    tops = given.get("top_logprobs") or [None] * len(given["tokens"])
    rows = zip(given["tokens"], given["token_logprobs"], tops, strict=True)
    return [(token, list((top or {token: value}).items())) for token, value, top in rows]

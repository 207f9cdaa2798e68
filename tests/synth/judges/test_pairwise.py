"""A preference counts where both orders name the same answer; what the order decides is told, not kept."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Sequence
from typing import Any

import pytest

from synth.judges import Judge, Pair, Preference, lean, position_bias, prefer
from synth.judges.letters import probability_of_first
from synth.replies import Failure, Reply
from synth.requests import Identity, Request

JUDGE = Judge()
PAIR = Pair(question="q", first="good text", second="poor text")
IDENTITY = Identity(model="judge")


def driven(flow: Generator[Sequence[Request], Any, Any], answer: Callable[[Request], Reply | Failure]) -> Any:
    try:
        effect = next(flow)
        while True:
            effect = flow.send([answer(request) for request in effect])
    except StopIteration as stopped:
        return stopped.value


def said(text: str, logprobs: str = "") -> Reply:
    return Reply(key="k", text=text, finish_reason="stop", logprobs=logprobs)


def good_is_a(request: Request) -> bool:
    content = str(request.messages[-1]["content"])
    return content.index("good text") < content.index("poor text")


def preference(forward: str, backward: str, **more: Any) -> Preference:
    def judge(request: Request) -> Reply:
        return said(forward if good_is_a(request) else backward)

    made: list[Preference] = driven(prefer(JUDGE, [PAIR], **more), judge)
    return made[0]


A, B, TIE = '{"better": "A"}', '{"better": "B"}', '{"better": "tie"}'


@pytest.mark.parametrize(
    ("forward", "backward", "winner", "reason"),
    [
        (A, B, "first", ""),
        (B, A, "second", ""),
        (A, A, "tie", "orders_disagree"),
        (B, B, "tie", "orders_disagree"),
        (TIE, TIE, "tie", "tie"),
        (A, TIE, "tie", "tie"),
        (TIE, A, "tie", "tie"),
        ("?", B, None, "unreadable"),
        (A, "?", None, "unreadable"),
        (f"{A} {B}", B, None, "unreadable"),
        ('{"better": "C"}', B, None, "unreadable"),
        ('{"better": 1}', B, None, "unreadable"),
        ('{"better": "b"}', A, "second", ""),
    ],
)
def test_both_orders_decide(forward: str, backward: str, winner: str | None, reason: str) -> None:
    found = preference(forward, backward)
    assert (found.winner, found.reason) == (winner, reason)


def test_orders_that_disagree_can_be_left_unscored() -> None:
    assert preference(A, A, disagreement="unscored").winner is None
    assert preference(TIE, TIE, disagreement="unscored").winner == "tie"


def test_a_judge_that_always_prefers_a_position_prefers_nothing_and_is_found_out() -> None:
    pairs = [Pair(question=f"q{at}", first="good text", second="poor text") for at in range(40)]
    made = driven(prefer(JUDGE, pairs), lambda request: said(A))
    assert {one.winner for one in made} == {"tie"}
    bias = position_bias(made)
    assert (bias.consistent.share, bias.first.share, bias.unscored.share) == (0.0, 1.0, 0.0)
    assert bias.first.low > 0.9
    fair = position_bias(driven(prefer(JUDGE, pairs), lambda request: said(A if good_is_a(request) else B)))
    assert (fair.consistent.share, fair.first.share, fair.first.high) == (1.0, None, 1.0)


def test_position_bias_of_nothing_claims_nothing() -> None:
    bias = position_bias([])
    assert (bias.pairs, bias.consistent.low, bias.consistent.high) == (0, 0.0, 1.0)
    assert driven(prefer(JUDGE, []), lambda request: said(A)) == []


def chat(*alternatives: tuple[str, float], chosen: str = "A") -> str:
    top = [{"token": token, "logprob": math.log(chance)} for token, chance in alternatives]
    return json.dumps({"content": [{"token": chosen, "logprob": -0.1, "top_logprobs": top}]})


@pytest.mark.parametrize(
    ("logprobs", "value"),
    [
        (chat(("A", 0.6), ("B", 0.2)), 0.75),
        (chat(("A", 0.3), (" A", 0.3), ("(B", 0.2)), 0.75),
        (chat(("A", 0.6)), 1.0),
        (json.dumps({"tokens": ["B"], "token_logprobs": [-0.1], "top_logprobs": [{"A": -2.0, "B": -2.0}]}), 0.5),
        ('{"content": [{"token": "\\n", "top_logprobs": [{"token": "A", "logprob": 0}]}, '
         '{"token": "B", "logprob": 0, "top_logprobs": []}]}', 0.0),
        (chat(("x", 0.9), chosen="x"), None),
        ("", None),
        ("[1, 2]", None),
        ("null", None),
        ('{"content": [{"token": 1}]}', None),
        ('{"content": [{"token": "A", "top_logprobs": [{"token": "A", "logprob": "NaN"}]}]}', None),
        ('{"tokens": ["A"], "token_logprobs": []}', None),
    ],
)  # fmt: skip
def test_the_letters_share_of_probability_is_read(logprobs: str, value: float | None) -> None:
    assert probability_of_first(logprobs) == (None if value is None else pytest.approx(value))


def test_leaning_is_the_mean_of_both_orders_and_can_be_clipped() -> None:
    def judge(request: Request) -> Reply:
        return said("A", chat(("A", 0.9), ("B", 0.1)) if good_is_a(request) else chat(("A", 0.5), ("B", 0.5)))

    assert driven(lean(JUDGE, [PAIR]), judge)[0].value == pytest.approx(0.7)
    assert driven(lean(JUDGE, [PAIR], bounds=(0.4, 0.6)), judge)[0].value == pytest.approx(0.6)
    assert next(lean(JUDGE, [PAIR]))[0].sampling.logprobs == 20


def test_leaning_without_probabilities_is_unscored() -> None:
    assert driven(lean(JUDGE, [PAIR]), lambda request: said("A"))[0].value is None
    failed = driven(lean(JUDGE, [PAIR]), lambda request: Failure(key="k", stage="wait", error="timeout"))
    assert (failed[0].value, failed[0].reason) == (None, "failed")

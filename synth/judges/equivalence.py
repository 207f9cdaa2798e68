"""A second look at answers that a rule takes for wrong: are they the gold, written otherwise?

Rules reject right answers more often than they accept wrong ones: over 38% of the responses on Big-Math that a rule
verifier rejected were right by arXiv:2505.14625. So a judge may turn wrong into right, by votes that all agree, and
nothing else: not right into wrong, and an error stays an error.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final

from synth.errors import SynthError
from synth.judges.judging import Judge, ask, fence, verdict_of
from synth.prompts import render
from synth.requests import Message, Request
from synth.verdicts import Outcome, Verdict

SCHEMA: Final = {
    "type": "object",
    "properties": {"same": {"type": "boolean"}},
    "required": ["same"],
    "additionalProperties": False,
}
MAX_ANSWER_CHARS: Final = 2_000
"""Of a final answer: a longer one is a text in which a judge could be talked round, and is not asked about."""

RESCUED: Final = "rescued"


def rescue(
    judge: Judge,
    verdict: Verdict,
    *,
    question: str,
    gold: Any,
    answer: str,
    votes: int = 2,
    template: str = "judge_equal",
) -> Generator[Sequence[Request], Any, Verdict]:
    """The verdict, or RIGHT with the reason `rescued: <the rule's>` where all votes call gold and answer the same.

    answer: the final answer, extracted, not the reply that it ends. Every second vote has the two in the other order.
    Only a wrong verdict is asked about; a vote that cannot be read rescues nothing. Raises SynthError for less than
    two votes, which could not agree.
    """
    if votes < 2:
        raise SynthError(f"rescue: {votes} votes; at least 2 are wanted, which agree")
    wanted = "\n".join(map(str, gold)) if isinstance(gold, list | tuple) else str(gold)
    if verdict.outcome is not Outcome.WRONG or not answer.strip() or len(answer) > MAX_ANSWER_CHARS or gold is None:
        return verdict
    orders = [(wanted, answer) if at % 2 == 0 else (answer, wanted) for at in range(votes)]
    opinions = yield from ask(
        judge,
        [_asked(template, question, *order) for order in orders],
        _read,
        schema=SCHEMA,
        rollouts=[at // 2 for at in range(votes)],
    )
    agreed = all(opinion.value is True for opinion in opinions)
    return Verdict(outcome=Outcome.RIGHT, reason=f"{RESCUED}: {verdict.reason}") if agreed else verdict


def _asked(template: str, question: str, first: str, second: str) -> Sequence[Message]:
    return render(template, question=question, first=first, second=second, fence=fence(question, first, second))


def _read(answer: str) -> bool | None:
    said = verdict_of(answer, "same")
    return said if isinstance(said, bool) else None

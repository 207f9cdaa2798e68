"""A reply that no file of text can hold is rejected when it comes, not when everything is exported."""

from __future__ import annotations

import pytest

from synth.replies import Finish, Parsed, Reply
from synth.tasks.asking import Asking
from synth.tasks.candidates import Candidate


@pytest.mark.parametrize(
    ("answer", "reasoning", "reason"),
    [
        ("It is 42.", None, ""),
        ("It is 42.", "Six times seven.", ""),
        ("It is\0 42.", None, "answer.invalid_text"),
        ("It is \ud800.", None, "answer.invalid_text"),
        ("It is 42.", "Six \uffff times seven.", "answer.invalid_text"),
        ("", None, "answer.empty"),
    ],
)
def test_what_cannot_be_written_is_rejected_at_once(answer: str, reasoning: str | None, reason: str) -> None:
    reply = Reply(key="ab" * 16, text=answer, finish_reason="stop")
    made = Candidate().answered((reply, Parsed(reasoning=reasoning, answer=answer, finish=Finish.STOP)), Asking())
    assert made.reason == reason

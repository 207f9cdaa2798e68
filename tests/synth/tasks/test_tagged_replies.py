"""What stands between tags is read as it is; what is not clear is not guessed."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.tasks.tagged import every, inside, word_of


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("<t>one</t>", ["one"]),
        ("so: <t>\n one \n</t> and <t>two</t>", ["one", "two"]),
        ("<t>open <t>inner</t>", ["inner"]),
        ("<t></t>", [""]),
        ("<t>never", []),
        ("</t>backwards<t>", []),
        ("<T>other case</T>", []),
        ("", []),
    ],
)
def test_parts_are_those_that_are_opened_and_closed(text: str, parts: list[str]) -> None:
    assert every(text, "t") == parts
    assert inside(text, "t") == (parts[0] if parts else None)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("yes", "yes"),
        ("Yes.", "yes"),
        ("**No**", "no"),
        ("No, it asks for a story.", "no"),
        ("The answer is: yes", "yes"),
        ("No\nbecause", "no"),
        ("Yes or no", None),
        ("Yes and what", None),
        ("yes... or rather, no", None),
        ("nothing of it", None),
        ("eyes", None),
        ("", None),
    ],
)
def test_a_word_is_said_at_an_end_or_not_at_all(text: str, word: str | None) -> None:
    assert word_of(text, ("yes", "no")) == word


@given(st.text(alphabet="<t>/ yesno1.\n"))
def test_any_text_gets_an_answer(text: str) -> None:
    every(text, "t")
    word_of(text, ("yes", "no"))


@pytest.mark.parametrize(
    "text", ["<t>" * 300_000, "</t>" * 300_000, "<t></t>" * 300_000, "<" * 10**6, "<t>" * 300_000 + "</t>"]
)
def test_a_huge_reply_is_read_in_linear_time(text: str) -> None:
    began = time.process_time()
    every(text, "t")
    word_of(text, ("yes", "no"))
    assert time.process_time() - began < 0.5

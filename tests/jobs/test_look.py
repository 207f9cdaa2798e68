from __future__ import annotations

import json

import pytest

from jobs.errors import UserError
from jobs.verbs import look
from tests.jobs.made_output import make


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make(tmp_path_factory.mktemp("made") / "out", rows=600))


def test_kept_documents_in_the_same_order_each_time(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert look.run(out, n=5) == 0
    first = capsys.readouterr().out
    look.run(out, n=5)
    assert capsys.readouterr().out == first
    look.run(out, n=3, json=True)
    rows = json.loads(capsys.readouterr().out)
    assert [text.split()[0] for text in first.splitlines() if text and not text.startswith((" ", "stands"))][:3] == [
        row["id"] for row in rows
    ]
    assert {"id", "source", "domain", "url", "text", "language"} <= set(rows[0])


@pytest.mark.parametrize(
    "address", ["quality", "quality.gopher_quality", "quality.gopher_quality.min_words", "minhash.near_duplicate"]
)
def test_dropped_documents_of_a_step_a_preset_or_a_rule(
    out: str, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    look.run(out, dropped=address, n=50, json=True)
    rows = json.loads(capsys.readouterr().out)
    assert rows
    assert all(f"{row['step']}.{row['rule']}".startswith(address) for row in rows)
    look.run(out, dropped=address, n=2)
    shown = capsys.readouterr().out
    assert f"dropped by {address.split('.', maxsplit=1)[0]}: " in shown


def test_the_reason_has_value_threshold_and_what_else_fails(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    look.run(out, dropped="quality.gopher_quality.min_words", n=600)
    shown = capsys.readouterr().out
    assert " against 50" in shown
    assert "; also fails gopher_quality.min_stop_words" in shown


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("qualty", "--dropped qualty: there is no step 'qualty' in this output; did you mean 'quality'?"),
        (
            "url.blocked_domains",
            "--dropped url.blocked_domains: url dropped nothing by a rule 'blocked_domains'; did you mean "
            "'blocked_domain'?",
        ),
        ("redact.x", "--dropped redact.x: redact dropped nothing; rules that dropped: none"),
    ],
)
def test_a_wrong_address_is_one_line(out: str, address: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        look.run(out, dropped=address)
    assert str(caught.value) == said


def test_no_terminal_escape_reaches_the_terminal(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    look.run(out, n=600)
    look.run(out, dropped="quality", n=600)
    look.run(out, n=600, json=True)
    shown = capsys.readouterr().out
    assert "[ESC]" in shown
    for hidden in ("\x1b", "\x07", "\u202e", "\x9b"):
        assert hidden not in shown


def test_nothing_is_none(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    look.run(out, dropped="redact", n=3)
    assert capsys.readouterr().out == "none\n"

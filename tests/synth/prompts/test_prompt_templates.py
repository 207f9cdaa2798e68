"""Templates are found by name and version, filled in without being read, and say which file is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.errors import SynthError
from synth.prompts import names, render, template

ABOUT = "purpose: p\nsource: ours\nlicence: CC0-1.0\nvariables:\n  question: what is asked\n"


def made(folder: Path, user: str = "{{ question }}\n", about: str = ABOUT, system: str = "", version: str = "1") -> str:
    inside = folder / "mine" / version
    inside.mkdir(parents=True)
    (inside / "user.jinja").write_text(user, encoding="utf-8")
    (inside / "about.yaml").write_text(about, encoding="utf-8")
    if system:
        (inside / "system.jinja").write_text(system, encoding="utf-8")
    return str(folder / "mine")


SAMPLES = {"options": ["first", "second"], "examples": ["one", "two"], "seen": ["yes"], "count": 3, "words": 10}


@pytest.mark.parametrize("reference", [f"{name}@{version}" for name, all_ in names().items() for version in all_])
def test_each_shipped_template_says_what_it_is_for_and_holds_its_values(reference: str) -> None:
    chosen = template(reference)
    assert chosen.title == reference
    assert chosen.purpose
    assert chosen.source
    assert chosen.licence
    values = {name: SAMPLES.get(name, f"<{name} {{{{ x }}}}>") for name in chosen.variables}
    messages = render(reference, **values)
    assert messages[-1]["role"] == "user"
    text = "\n".join(str(message["content"]) for message in messages)
    for name, value in values.items():
        if name != "boxed":
            assert str(value[0] if isinstance(value, list) else value) in text


def test_a_value_is_put_in_as_it_is_whatever_it_says() -> None:
    hostile = "{{ 7 * 7 }}{% for i in range(9) %}{# gone #}${x} %s {0} <b>&</b>\n\n"
    assert render("question", question=hostile)[0]["content"] == hostile


@given(st.text())
def test_any_text_comes_through_unchanged(text: str) -> None:
    assert render("question", question=text) == ({"role": "user", "content": text},)


def test_the_latest_version_is_taken_and_an_older_one_by_number(tmp_path: Path) -> None:
    made(tmp_path, user="old {{ question }}\n", version="2")
    mine = made(tmp_path, user="new {{ question }}\n", version="10")
    assert render(mine, question="q")[0]["content"] == "new q"
    assert render(f"{mine}@2", question="q")[0]["content"] == "old q"
    assert (template(mine).version, template(f"{mine}@2").title) == (10, "mine@2")


def test_a_system_turn_that_comes_out_blank_is_left_out(tmp_path: Path) -> None:
    mine = made(tmp_path, system="{% if question == 'x' %}Be brief.{% endif %}\n")
    assert [message["role"] for message in render(mine, question="x")] == ["system", "user"]
    assert [message["role"] for message in render(mine, question="y")] == ["user"]


def test_a_digest_is_of_what_is_asked_and_of_nothing_else(tmp_path: Path) -> None:
    first = template(made(tmp_path / "a"))
    moved = template(made(tmp_path / "b", about=ABOUT.replace("purpose: p", "purpose: another"), version="3"))
    other = template(made(tmp_path / "c", user="Q: {{ question }}\n"))
    defaults = template(made(tmp_path / "d", about=f"{ABOUT}defaults:\n  question: none\n"))
    assert first.digest == moved.digest
    assert len({first.digest, other.digest, defaults.digest}) == 3


def test_defaults_stand_for_values_that_are_not_given(tmp_path: Path) -> None:
    mine = made(tmp_path, about=f"{ABOUT}defaults:\n  question: why?\n")
    assert render(mine)[0]["content"] == "why?"
    assert render(mine, question="how?")[0]["content"] == "how?"


@pytest.mark.parametrize(
    ("user", "about", "values", "told"),
    [
        ("{{ question }}", ABOUT, {}, "user.jinja: question: no value"),
        ("{{ question }}", ABOUT, {"question": "q", "wuestion": 1}, "user.jinja: wuestion: no such variable"),
        ("{{ answer }}", ABOUT, {"question": "q"}, "user.jinja: answer: about.yaml names no such variable"),
        ("a\n{% if %}", ABOUT, {"question": "q"}, "user.jinja: line 2: no Jinja"),
        ("{{ question.secret }}", ABOUT, {"question": "q"}, "user.jinja: it reads a part"),
        ("{{ question.__class__.__mro__ }}", ABOUT, {"question": "q"}, "user.jinja: the sandbox forbids it"),
        ("{{ question + 1 }}", ABOUT, {"question": "q"}, "user.jinja: TypeError"),
        ("{{ question.append(1) }}", ABOUT, {"question": [1]}, "user.jinja: the sandbox forbids it"),
        ("{{ question }}", "purpose: [", {"question": "q"}, "about.yaml: line 1: not YAML"),
        ("{{ question }}", "- a", {"question": "q"}, "about.yaml: not a mapping"),
        ("{{ question }}", f"{ABOUT}author: me\n", {"question": "q"}, "about.yaml: author: unknown"),
        ("{{ question }}", "variables: question", {"question": "q"}, "about.yaml: variables: a mapping"),
        ("{{ question }}", f"{ABOUT}defaults: {{x: 1}}\n", {"question": "q"}, "about.yaml: defaults: x"),
    ],
)
def test_an_error_names_the_file_and_what_is_wrong(
    tmp_path: Path, user: str, about: str, values: dict[str, object], told: str
) -> None:
    mine = made(tmp_path, user=user, about=about)
    with pytest.raises(SynthError) as raised:
        render(mine, **values)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "reference", ["nothing_of_the_kind", "question@99", "question@latest", "./nowhere", "", ".", "@1", "/"]
)
def test_a_reference_to_nothing_is_refused_in_one_line(reference: str) -> None:
    with pytest.raises(SynthError, match=r"^prompt "):
        template(reference)


def test_an_error_never_quotes_a_value(tmp_path: Path) -> None:
    mine = made(tmp_path, user="{{ {}[question].x }}")
    with pytest.raises(SynthError) as raised:
        render(mine, question="a secret of a user")
    assert "secret" not in str(raised.value)

"""The simulated teacher's laws: skill by temperature, lengths, tokens; each in closed form and as drawn."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.simulator.answering import Answerer
from synth.simulator.settings import Known, Rule, SimulatorSettings, Skill, Speech
from synth.simulator.skill import answers, drawn, pick, probabilities
from synth.simulator.speech import cut, decode, encode, instance


def asked(text: str, seed: int = 0, **more: object) -> dict[str, object]:
    return {"model": "simulated", "messages": [{"role": "user", "content": text}], "seed": seed, **more}


@pytest.mark.parametrize("law", ["modes", "falls", "constant"])
@pytest.mark.parametrize("skill", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_at_temperature_one_each_law_is_right_with_the_skill(law: str, skill: float) -> None:
    chances = probabilities(Skill(law=law), skill, 1.0)
    assert chances[0] == pytest.approx(skill)
    assert sum(chances) == pytest.approx(1)


def test_heat_helps_where_the_right_answer_is_not_the_likeliest_and_hurts_where_it_is() -> None:
    cold, hot = (probabilities(Skill(), 0.1, t)[0] for t in (0.5, 2.0))
    assert cold < 0.1 < hot
    cold, hot = (probabilities(Skill(), 0.7, t)[0] for t in (0.5, 2.0))
    assert hot < 0.7 < cold
    assert probabilities(Skill(), 0.7, 0.0)[0] == pytest.approx(1)
    assert probabilities(Skill(), 0.2, 0.0)[0] == pytest.approx(0)


def test_the_falling_law_only_falls_with_heat() -> None:
    right = [probabilities(Skill(law="falls"), 0.4, t)[0] for t in (0.0, 0.5, 1.0, 2.0)]
    assert right == sorted(right, reverse=True)
    assert len(set(right)) == 4


def test_drawn_answers_follow_the_law_within_four_standard_errors() -> None:
    answerer = Answerer(SimulatorSettings(known={"a": Known(gold="42", skill=0.3)}, speech=Speech(words=2)))
    told = [answerer.say(asked("[item a] how many?", seed)).text for seed in range(2000)]
    right = sum("\\boxed{42}" in text for text in told) / len(told)
    assert abs(right - 0.3) < 4 * (0.3 * 0.7 / 2000) ** 0.5


def test_wrong_answers_are_near_a_number_and_never_the_right_one() -> None:
    assert answers(Known(gold="7"), 5) == ("7", "8", "6", "9", "5")
    assert answers(Known(gold="x", wrong=("y", "x", "y", "z")), 3) == ("x", "y", "z")
    assert answers(Known(gold="a b"), 3)[1:] == ("a b (1)", "a b (-1)")


def test_duplicates_say_the_same_for_all_seeds() -> None:
    settings = SimulatorSettings(known={"a": Known(gold="1")}, speech=Speech(duplicates=1.0))
    assert len({Answerer(settings).say(asked("[item a]", seed)).text for seed in range(20)}) == 1


def test_reasoning_is_longer_for_harder_questions() -> None:
    known = {"hard": Known(gold="1", skill=0.0), "easy": Known(gold="1", skill=1.0)}
    answerer = Answerer(SimulatorSettings(known=known, speech=Speech(words=50)))
    words = {
        name: sum(len(answerer.say(asked(f"[item {name}]", seed)).text.split()) for seed in range(200))
        for name in known
    }
    assert 1.6 < words["hard"] / words["easy"] < 2.2


@pytest.mark.parametrize(
    ("speech", "opening", "closing"),
    [
        (Speech(), True, True),
        (Speech(reasoning="closing"), False, True),
        (Speech(reasoning="none"), False, False),
        (Speech(untagged=1.0), False, False),
        (Speech(unclosed=1.0), True, False),
    ],
)
def test_tags_stand_or_are_missing_as_settings_say(speech: Speech, opening: bool, closing: bool) -> None:
    text = Answerer(SimulatorSettings(known={"a": Known(gold="1")}, speech=speech)).say(asked("[item a]")).text
    assert (text.startswith("<think>"), "</think>" in text) == (opening, closing)


def test_an_item_is_found_by_its_marker_or_by_its_text_wherever_it_stands() -> None:
    known = {"a": Known(gold="1", skill=1.0), "b": Known(gold="2", skill=1.0, prompt="How many legs has a bird?")}
    answerer = Answerer(SimulatorSettings(known=known, speech=Speech(reasoning="none")))
    assert answerer.say(asked("Solve: [item a] now")).text == "The answer is \\boxed{1}."
    assert answerer.say(asked("Think. How many legs has a bird? Say it.")).text == "The answer is \\boxed{2}."
    again = {"messages": [{"role": "user", "content": "[id=b]"}, {"role": "assistant", "content": "so"},
                          {"role": "user", "content": "Are you sure?"}]}  # fmt: skip
    assert answerer.say(again).text == "The answer is \\boxed{2}."
    assert answerer.say({"prompt": "[item:a]"}).text == "The answer is \\boxed{1}."


def test_reasoning_that_was_closed_for_it_is_gone_on_from_with_the_answer() -> None:
    answerer = Answerer(SimulatorSettings(known={"a": Known(gold="1", skill=1.0)}))
    body = asked("[item a]", continue_final_message=True)
    body["messages"] = [*body["messages"], {"role": "assistant", "content": "<think>\nwell\n</think>\n\nFinal answer:"}]  # type: ignore[misc]
    assert answerer.say(body).text == "The answer is \\boxed{1}."


def test_rules_reply_with_groups_draws_and_probabilities() -> None:
    rules = (
        Rule(match=r"name is (?P<who>\w+) (\w+)", reply=("{{who}}, {{2}}: {{\\boxed{{{2}}}}} {{9}}",)),
        Rule(match="judge", system="strict", probabilities={"A": 0.9, "B": 0.1}),
        Rule(match="judge", reply=("yes", "no")),
        Rule(match="call", tool="add", reply=('{"a": 1}',)),
    )
    answerer = Answerer(SimulatorSettings(rules=rules))
    assert answerer.say(asked("my name is Ann Lee")).text == "Ann, Lee: {{\\boxed{Lee}}} {{9}}"
    assert {answerer.say(asked("judge", seed)).text for seed in range(20)} == {"yes", "no"}
    strict = {"messages": [{"role": "system", "content": "Be strict."}, {"role": "user", "content": "judge"}]}
    assert answerer.say(strict).alternatives == {"A": 0.9, "B": 0.1}
    assert answerer.say(asked("call")).finish_reason == "tool_calls"


def test_a_script_is_asked_before_the_rules(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "script.py"
    path.write_text("def reply(body, number):\n    return f'{number:.3f}' if body['seed'] else None\n")
    answerer = Answerer(SimulatorSettings(script=f"{path}:reply", otherwise="nothing"))
    assert answerer.say(asked("x", 0)).text == "nothing"
    assert 0 <= float(answerer.say(asked("x", 1)).text) <= 1


@given(st.text(), st.sampled_from([1, 2, 3]))
def test_token_ids_hold_the_whole_text(text: str, size: int) -> None:
    assert decode(encode(text, size)) == text


@given(st.text(), st.integers(0, 40), st.sampled_from([1, 2, 3]))
def test_a_cut_keeps_whole_characters_and_no_more_tokens_than_allowed(text: str, tokens: int, size: int) -> None:
    kept, short = cut(text, tokens, size)
    assert text.startswith(kept)
    assert len(encode(kept, size)) <= tokens
    assert short == (len(encode(text, size)) > tokens)


def test_what_is_drawn_is_uniform_and_depends_on_its_parts_alone() -> None:
    numbers = [drawn("x", at) for at in range(2000)]
    assert abs(sum(numbers) / 2000 - 0.5) < 4 * (1 / 12 / 2000) ** 0.5
    assert all(0 <= number < 1 for number in numbers)
    assert drawn("x", 5) == numbers[5]
    assert drawn("a", [1, 2]) == 0.24488603377080387
    assert [pick((0.5, 0.5), number) for number in (0.0, 0.49, 0.5, 0.99)] == [0, 0, 1, 1]


def test_guided_replies_are_instances_of_their_schema() -> None:
    import jsonschema

    schema = {
        "type": "object",
        "properties": {
            "score": {"type": "integer", "minimum": 3},
            "why": {"type": "string"},
            "kind": {"enum": ["a", "b"]},
            "steps": {"type": "array", "items": {"type": "number"}, "minItems": 2},
            "ok": {"type": "boolean"},
            "more": {"anyOf": [{"type": "null"}, {"type": "string"}]},
        },
        "required": ["score", "why", "kind", "steps", "ok", "more"],
    }
    jsonschema.validate(instance(schema), schema)
    body = asked("x", response_format={"type": "json_schema", "json_schema": {"schema": schema}})
    jsonschema.validate(json.loads(Answerer(SimulatorSettings()).say(body).text), schema)

"""Self-instruct, evol-instruct, personas, magpie and back-translation conclude as their sources say."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from synth.errors import SynthError
from synth.flows import Desk
from synth.items import Item, Outcome
from synth.requests import Request
from synth.tasks.back_translation import BackTranslation
from synth.tasks.evolve import Evolve
from synth.tasks.magpie import Magpie
from synth.tasks.persona import Persona
from synth.tasks.self_instruct import SelfInstruct
from tests.synth.tasks.flow_driver import Run, Said, drive, failure, text_of

SEEDS = [Item(id=str(at), prompt=f"Seed number {at} asks for something of its own kind {at * 7}") for at in range(9)]
NOUNS = (
    "harbour",
    "engine",
    "violin",
    "glacier",
    "ledger",
    "orchard",
    "falcon",
    "theatre",
    "bakery",
    "quarry",
    "meadow",
)
VERBS = ("Describe", "Compare", "Summarise", "Translate", "Criticise", "Rank", "Explain", "Defend", "Parody", "Outline")


def task_of(number: int) -> str:
    """Instructions that are unlike each other by their words."""
    noun, verb = NOUNS[number % len(NOUNS)], VERBS[(number // len(NOUNS)) % len(VERBS)]
    return f"{verb} the {noun} in {number} {noun}s with {verb.lower()}d {number * 13} words"


class Grower:
    """Answers each stage of self-instruct; its lists repeat every fourth task."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, request: Request) -> Said:
        text = text_of(request)
        if "further tasks" in text:
            start = self.made
            self.made += 4
            return "\n".join(f"<task>\n{task_of(at if at % 4 else 0)}\n</task>" for at in range(start, start + 4))
        if "fixed set of labels" in text:
            return "yes" if "Rank" in text else "No."
        if "Choose one of its possible labels" in text:
            return "<output>good</output>\n<input>a fine day</input>"
        return "<input></input><output>Done as told.</output>"


def test_a_pool_grows_to_its_target_and_keeps_what_it_rejects() -> None:
    task = SelfInstruct(instructions=20, requests=2, tasks=4)
    (item,) = task.items(SEEDS)
    run = drive(task, item, Grower())
    accepted = run.accepted()
    assert 20 <= len(accepted) < 28
    assert set(run.reasons()) == {"", "novelty.rouge_l"}
    assert len(run.samples) == 4 * sum("further tasks" in text_of(request) for request in run.requests)
    sizes = [sample.figures["pool"] for sample in run.samples]
    assert sizes == sorted(sizes)
    assert sizes[-1] == len(SEEDS) + len(accepted)
    assert {len(sample.keys) for sample in accepted} == {3}


def test_labels_come_first_where_a_task_is_a_classification() -> None:
    task = SelfInstruct(instructions=4, requests=1)
    (item,) = task.items(SEEDS)
    listed = "<task>Rank this day as good or bad please</task><task>Explain the harbour to a small child</task>"
    grower = Grower()
    run = drive(task, item, lambda request: listed if "further tasks" in text_of(request) else grower(request))
    ranked = next(one for one in run.accepted() if "Rank" in one.messages[0]["content"])
    assert ranked.messages[0]["content"].endswith("bad please\n\na fine day")
    assert ranked.messages[1] == {"role": "assistant", "content": "good"}
    assert ranked.tokens < run.requests[0].sampling.max_tokens
    explained = next(one for one in run.accepted() if "Explain" in one.messages[0]["content"])
    assert explained.messages[1]["content"] == "Done as told."


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Tell me one thing", ""),
        ("Tell me things", "instruction.too_short"),
        ("請寫一首關於海的詩", ""),
        ("word " * 150, ""),
        ("word " * 151, "instruction.too_long"),
        ("Draw me a fine house", "instruction.keyword"),
        ("Say where to GO to now", "instruction.keyword"),
        ("Mapping a town by words", ""),
        ("- tell me one thing", "instruction.starts_with_a_symbol"),
        ("« Dites » une chose ou deux", ""),
        (SEEDS[0].prompt, "novelty.rouge_l"),
    ],
)
def test_each_rule_on_instructions_has_two_sides(text: str, reason: str) -> None:
    task = SelfInstruct(instructions=1, requests=1, rounds=1)
    (item,) = task.items(SEEDS)
    run = drive(task, item, lambda one: f"<task>{text}</task>" if "further" in text_of(one) else Grower()(one))
    assert run.reasons() == [reason]


def test_a_pool_that_no_longer_grows_is_given_up() -> None:
    task = SelfInstruct(requests=2, patience=3, rounds=100)
    (item,) = task.items(SEEDS)
    run = drive(task, item, failure)
    assert run.effects == 3
    assert [sample.outcome for sample in run.samples] == [Outcome.FAILED] * 6
    assert len(set(run.keys)) == 6


def test_examples_are_drawn_by_the_seed_from_seeds_and_made_ones() -> None:
    task = SelfInstruct(instructions=30, requests=2)
    (item,) = task.items(SEEDS)
    first, second = (drive(task, item, Grower(), desk=Desk(seed=seed)) for seed in (1, 2))
    assert first.keys != second.keys
    lists = [text_of(request) for request in first.requests if "further tasks" in text_of(request)]
    assert lists[0].count("Seed number") == 6
    assert lists[-1].count("<task>") - 1 == 8
    assert lists[-1].count("Seed number") == 6


@pytest.mark.parametrize(("licences", "told"), [("MIT MIT", "MIT"), ("MIT CC0-1.0", "CC0-1.0 AND MIT")])
def test_a_pool_carries_its_seeds_licences(licences: str, told: str) -> None:
    rows = [Item(id=str(at), prompt=f"p{at}", licence=licence) for at, licence in enumerate(licences.split())]
    assert next(iter(SelfInstruct().items(rows))).licence == told
    assert next(iter(SelfInstruct().items([*rows, Item(id="x", prompt="x")]))).licence == ""


def evolver(
    evolved: str = "Harder task {n} than before", same: str = "different", answer: str = "A long answer."
) -> Any:
    count = iter(range(100))

    def said(request: Request) -> Said:
        text = text_of(request)
        if "Make the task below" in text or "The task below is one of its field" in text:
            return f"<task>{evolved.replace('{n}', str(next(count)))}</task>"
        return same if "Do they ask for the same" in text else answer

    return said


def test_each_step_starts_from_the_last_one_that_succeeded() -> None:
    run = drive(Evolve(rounds=3), Item(id="e", prompt="Start here"), evolver())
    assert [sample.messages[0]["content"] for sample in run.accepted()] == [
        f"Harder task {n} than before" for n in range(3)
    ]
    asked = [text_of(request) for request in run.requests if "<task>" in text_of(request)]
    assert ["Start here" in asked[0], "Harder task 0" in asked[1], "Harder task 1" in asked[2]] == [True] * 3
    assert {len(sample.keys) for sample in run.samples} == {3}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (evolver(), ""),
        (evolver(evolved="The #Rewritten Prompt# is this"), "evolve.copied_words"),
        (evolver(evolved="start   HERE"), "evolve.unchanged"),
        (evolver(evolved="w " * 400), ""),
        (evolver(evolved="w " * 401), "evolve.too_long"),
        (evolver(evolved=""), "parse.empty_tag"),
        (evolver(same="They are the same"), "evolve.no_gain"),
        (evolver(same="Same or different? Who knows"), "judge.unscored"),
        (evolver(answer="I am sorry, no."), "answer.refusal"),
        (evolver(answer="Sorry " + "word " * 79), ""),
        (evolver(answer="it is, and was the!"), "answer.no_words"),
        (evolver(answer="No."), ""),
    ],
)
def test_each_rule_that_eliminates_has_two_sides(said: Any, reason: str) -> None:
    run = drive(Evolve(rounds=1), Item(id="e", prompt="Start here"), said)
    assert run.reasons() == [reason]


def test_a_step_that_fails_starts_again_from_the_instruction_before_it() -> None:
    run = drive(Evolve(rounds=4), Item(id="e", prompt="Start here"), evolver(same="same"))
    asked = [text_of(request) for request in run.requests if "Start here" in text_of(request)]
    assert len(asked) == 8
    assert run.reasons() == ["evolve.no_gain"] * 4


@pytest.mark.parametrize(("share", "broad"), [(0.0, 0), (1.0, 4)])
def test_breadth_is_drawn_by_its_share(share: float, broad: int) -> None:
    run = drive(Evolve(rounds=4, broader_share=share), Item(id="e", prompt="Start here"), evolver())
    assert sum(sample.facts["operation"] == "evolve_breadth" for sample in run.samples) == broad


def test_every_persona_meets_every_template() -> None:
    task = Persona(prompts=("persona_math", "persona_code"), tasks=2)
    items = list(task.items([Item(id="a", text="A beekeeper"), Item(id="b", prompt="A tram driver")]))
    assert [item.id for item in items] == ["a/persona_math", "a/persona_code", "b/persona_math", "b/persona_code"]
    run = drive(
        task, items[2], lambda one: f"<task>Job {one.rollout}</task>" if "persona" in text_of(one) else "Done well."
    )
    assert "A tram driver" in text_of(run.requests[0])
    assert [sample.messages[0]["content"] for sample in run.accepted()] == ["Job 0", "Job 1"]
    assert not any("tram driver" in str(sample.messages) for sample in run.samples)


def test_a_task_that_a_persona_repeats_is_rejected() -> None:
    (item,) = Persona().items([Item(id="a", text="A beekeeper")])
    run = drive(
        Persona(tasks=3), item, lambda one: "<task>Same  job</task>" if "persona" in text_of(one) else "Done well."
    )
    assert run.reasons() == ["", "task.repeated", "task.repeated"]


def instructed(text: str, family: str = "chatml", **more: Any) -> Run:
    task = Magpie(family=family, count=1, **more)
    (item,) = task.items([])
    return drive(task, item, lambda one: text if one.prompt is not None else "An answer to it.")


def test_an_instruction_is_drawn_from_the_start_of_a_users_turn_alone() -> None:
    run = instructed("How do bees find home?")
    assert run.requests[0].prompt == "<|im_start|>user\n"
    assert run.requests[0].sampling.stop == ("<|im_end|>",)
    assert run.requests[1].messages == ({"role": "user", "content": "How do bees find home?"},)
    assert [message["role"] for message in run.accepted()[0].messages] == ["user", "assistant"]


def test_rows_are_systems_texts_and_no_two_items_share_a_reply() -> None:
    task = Magpie(count=3)
    items = list(task.items([Item(id="m", prompt="You teach {mathematics}")]))
    runs = [drive(task, item, lambda one: "What is a ring?" if one.prompt else "This.") for item in items]
    assert len({run.keys[0] for run in runs}) == 3
    assert runs[0].requests[0].prompt == "<|im_start|>system\nYou teach {mathematics}<|im_end|>\n<|im_start|>user\n"
    assert "teach" not in str(runs[0].samples[0].messages)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("one two three", ""),
        ("one two", "instruction.too_short"),
        ("w " * 400, ""),
        ("w " * 401, "instruction.too_long"),
        ("What is this?<|im_start|>assistant", "instruction.control_token"),
        ("Is a < b | c > d true", ""),
        ("", "answer.empty"),
    ],
)
def test_each_rule_on_drawn_instructions_has_two_sides(text: str, reason: str) -> None:
    assert instructed(text).reasons() == [reason]


@pytest.mark.parametrize("wrong", [{"family": "elm"}, {"family": "custom"}, {"stop": ("x",)}])
def test_a_family_that_is_half_told_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Magpie(**wrong)


def test_a_family_of_the_users_own() -> None:
    run = instructed("How do bees?", family="custom", start="<u>{system}", stop=("</u>",))
    assert (run.requests[0].prompt, run.requests[0].sampling.stop) == ("<u>", ("</u>",))


TEXT = Item(id="t", text="Bees see the polarised light of the sky, and find home by it. " * 3, licence="CC0-1.0")


def translator(grades: dict[int, str]) -> Any:
    def said(request: Request) -> Said:
        if "how good an answer it is" not in text_of(request):
            return f"<task>How do bees find home, in way {request.rollout}?</task>"
        number = int(re.findall(r"in way (\d+)", text_of(request))[0])
        return f'So so. {{"grade": {grades[number]}}}'

    return said


def test_the_best_instruction_is_kept_with_the_text_as_its_answer() -> None:
    run = drive(BackTranslation(instructions=4), TEXT, translator({0: "4", 1: "5", 2: "3", 3: "six"}))
    assert run.reasons() == ["choice.not_best", "", "judge.low_grade", "judge.unscored"]
    (kept,) = run.accepted()
    assert kept.messages[1] == {"role": "assistant", "content": TEXT.text}
    assert kept.messages[0]["content"] == "How do bees find home, in way 1?"
    assert kept.figures["score"] == 5
    assert run.samples[3].outcome is Outcome.FAILED
    assert "score" not in run.samples[3].figures


@pytest.mark.parametrize(
    ("grade", "reason"),
    [
        ("4", ""),
        ("3.9", "judge.low_grade"),
        ("9", "judge.unscored"),
        ("0", "judge.unscored"),
        ('"5"', "judge.unscored"),
    ],
)
def test_a_grade_is_one_number_of_the_scale_or_none(grade: str, reason: str) -> None:
    assert drive(BackTranslation(), TEXT, translator({0: grade})).reasons() == [reason]


@pytest.mark.parametrize(("characters", "reason"), [(20_000, ""), (20_001, "item.too_long"), (0, "item.no_text")])
def test_a_text_too_long_to_answer_anything_is_rejected_unasked(characters: int, reason: str) -> None:
    run = drive(BackTranslation(), Item(id="t", text="x" * characters), translator({0: "5"}))
    assert run.reasons() == [reason]
    assert bool(run.requests) == (reason == "")


def test_settings_refuse_a_template_that_needs_what_is_not_given() -> None:
    with pytest.raises(ValidationError, match="needs question"):
        Persona(prompts=("question",))
    with pytest.raises(ValidationError, match="no such template"):
        Evolve(answer_prompt="nothing_of_it")
    with pytest.raises(ValidationError):
        Evolve(round=3)  # type: ignore[call-arg]
    with pytest.raises(SynthError):
        list(SelfInstruct().items([Item(id="x")]))

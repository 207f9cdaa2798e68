"""Exports prove themselves: six template families, terms that travel and block, and an account of every row."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.errors import SynthError
from synth.exports import Export, Row, export
from synth.exports.card import card
from synth.exports.columns import RefusedRowError
from synth.exports.licences import LicencePolicy, Terms
from synth.exports.proof import Proof
from synth.items import Item, Outcome, Sample, SampleKind
from tests.train.sft.conftest import FAMILIES, Family, families, write_tokenizer
from train.sft.templates import template_source

__all__ = ["families"]  # a fixture of the folder that tests the templates

OPEN = {"teacher": Terms(licence="Apache-2.0")}
USER = {"role": "user", "content": "How much is 6 times 7?"}


def row(number: int = 0, **changes: Any) -> Row:
    item = Item(id=f"item-{number}", prompt=USER["content"], gold="42", verifier="math", licence="MIT", domain="sums")
    answer = {"role": "assistant", "content": f"It is 42. ({number})", "reasoning_content": "6 times 7 is 42."}
    sample = Sample(
        item=item.id, number=0, kind=SampleKind.CONVERSATION, keys=("ab" * 16,), outcome=Outcome.ACCEPTED,
        messages=(USER, answer), verdict="right", tokens=9,
    )  # fmt: skip
    item = replace(item, **changes.pop("item", {}))
    return Row(sample=replace(sample, **changes), item=item, task="sums", teachers=("teacher",), pass_rate=0.5)


def read(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / "data").to_pylist()
    return rows


@pytest.mark.parametrize("name", FAMILIES)
def test_each_family_has_one_bos_a_mask_of_the_answer_alone_and_ids_of_the_text(
    families: dict[str, Family], tmp_path: Path, name: str
) -> None:
    plain = {"role": "assistant", "content": "It is 42."}
    turns = (USER, {"role": "assistant", "content": "Sure?"}, {"role": "user", "content": "Say it."}, plain)
    rows = [row(0, messages=(USER, plain)), row(1, messages=turns)]
    account = export(rows, str(tmp_path / "out"), Export(model=families[name].folder, terms=OPEN))
    assert account.written == 2
    library = Proof(model=families[name].folder).reading.tokenizer.library
    bos = FAMILIES[name][0]
    for told in read(tmp_path / "out"):
        ids, mask = told["input_ids"], told["loss_mask"]
        trained = answer(families[name], told)
        assert trained.removeprefix("<think>\n\n</think>\n\n").lstrip().startswith(f"It is 42.{families[name].end}")
        assert trained.count("It is 42.") == 1
        assert "Sure?" not in trained
        assert bos is None or ids.count(library.token_to_id(bos)) == 1
        assert mask.index(True) > 0
        assert sum(a != b for a, b in zip(mask, mask[1:], strict=False)) <= 2


def answer(family: Family, told: dict[str, Any]) -> str:
    """What the loss is on, as text."""
    library = Proof(model=family.folder).reading.tokenizer.library
    trained = [one for one, on in zip(told["input_ids"], told["loss_mask"], strict=True) if on]
    return str(library.decode(trained, skip_special_tokens=False))


def test_reasoning_stays_in_the_answer_where_the_template_has_it(families: dict[str, Family], tmp_path: Path) -> None:
    export([row()], str(tmp_path / "out"), Export(model=families["qwen3"].folder, terms=OPEN))
    text = answer(families["qwen3"], read(tmp_path / "out")[0])
    assert text.index("<think>") < text.index("6 times 7 is 42.") < text.index("</think>") < text.index("It is 42.")


def test_a_template_that_drops_the_reasoning_fails_closed_and_leaves_nothing(
    families: dict[str, Family], tmp_path: Path
) -> None:
    with pytest.raises(SynthError, match=r"1 of 1 rows failed their proof.*export.content_changed 1 \(sums/item-0/0\)"):
        export([row()], str(tmp_path / "out"), Export(model=families["llama3"].folder, terms=OPEN))
    assert not (tmp_path / "out").exists()


def test_a_second_bos_is_found(families: dict[str, Family], tmp_path: Path) -> None:
    template = tmp_path / "double.jinja"
    source = (Path(families["llama3"].folder) / "chat_template.jinja").read_text()
    template.write_text("{{ bos_token }}" + source)
    plain = row(messages=(USER, {"role": "assistant", "content": "42"}))
    made = Export(model=families["llama3"].folder, terms=OPEN)
    with pytest.raises(SynthError, match=r"export\.(double_bos|bos_count)"):
        export([plain], str(tmp_path / "out"), replace(made, chat_template=str(template)))


def test_a_bos_that_frames_each_message_is_counted_as_the_template_writes_it(tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "framed", "<|im_start|>", "<|im_end|>", [], [])
    (tmp_path / "framed" / "chat_template.jinja").write_text(template_source("chatml", ""))
    told = (USER, {"role": "assistant", "content": "It is 42, not <|im_start|>."})
    account = export([row(messages=told)], str(tmp_path / "out"), Export(model=str(tmp_path / "framed"), terms=OPEN))
    assert account.written == 1


def test_refused_rows_are_listed_without_text(families: dict[str, Family], tmp_path: Path) -> None:
    rows = [row(0, messages=(USER, {"role": "assistant", "content": "42"})), row(1, messages=(USER,)), row(2)]
    made = Export(model=families["gemma"].folder, max_refused=0.7, terms=OPEN)
    account = export(rows, str(tmp_path / "out"), made)
    assert (account.rows_in, account.written, account.refused.total()) == (3, 1, 2)
    refused = pq.read_table(tmp_path / "out" / "refused.parquet").to_pylist()
    assert [one["id"] for one in refused] == ["sums/item-1/0", "sums/item-2/0"]
    assert refused[0]["reason"] == "export.no_answer"


@pytest.mark.parametrize(("share", "fails"), [(0.5, False), (0.49, True)])
def test_the_share_of_refused_rows_is_the_limit(tmp_path: Path, share: float, fails: bool) -> None:
    rows = [row(0), row(1, messages=(USER,))]
    made = Export(max_refused=share, terms=OPEN)
    if fails:
        with pytest.raises(SynthError, match="1 of 2 rows failed"):
            export(rows, str(tmp_path / "out"), made)
    else:
        assert export(rows, str(tmp_path / "out"), made).written == 1


def test_rejected_samples_are_left_out_by_their_reasons(tmp_path: Path) -> None:
    rows = [row(0), row(1, outcome=Outcome.REJECTED, reason="verify.wrong"), row(2, kind=SampleKind.DOCUMENT, text="x")]
    account = export(rows, str(tmp_path / "out"), Export(terms=OPEN))
    assert account.left_out == {"verify.wrong": 1, "kind.document": 1}
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert told["rows"] == {"in": 3, "written": 1, "left_out": 2, "blocked": 0, "refused": 0}


@pytest.mark.parametrize(
    ("licence", "terms", "policy", "reason"),
    [
        ("MIT", Terms(), {}, ""),
        ("CC-BY-SA-4.0", Terms(), {}, ""),
        ("", Terms(), {}, "licence.unknown"),
        ("", Terms(), {"unknown": "take"}, ""),
        ("Own-1.0", Terms(), {}, "licence.unknown"),
        ("mit", Terms(), {}, ""),
        ("MIT AND Apache-2.0", Terms(), {}, ""),
        ("MIT AND CC-BY-NC-4.0", Terms(), {"unknown": "take"}, "licence.research_only"),
        ("MIT AND CC-BY-ND-4.0", Terms(), {"unknown": "take"}, "licence.no_derivatives"),
        ("MIT OR Own-1.0", Terms(), {}, "licence.unknown"),
        ("Own-1.0", Terms(), {"more": {"Own-1.0": "free"}}, ""),
        ("MIT", None, {}, "licence.teacher_unknown"),
        ("MIT", None, {"unknown": "take"}, ""),
        ("CC-BY-NC-4.0", Terms(), {}, "licence.research_only"),
        ("CC-BY-NC-4.0", Terms(), {"use": "research"}, ""),
        ("CC-BY-ND-4.0", Terms(), {"use": "research"}, "licence.no_derivatives"),
        ("MIT", Terms(uses=("research",)), {}, "licence.teacher_use"),
        ("MIT", Terms(competing_models=False), {}, "licence.teacher_competes"),
        ("MIT", Terms(competing_models=False), {"competing_models": False}, ""),
        ("CC-BY-SA-4.0", Terms(licence="GPL-3.0-or-later"), {}, ""),
        ("CC-BY-SA-4.0", Terms(licence="GPL-2.0-only"), {}, "licence.conflict"),
        ("CC-BY-NC-SA-4.0", Terms(licence="CC-BY-SA-4.0"), {"use": "research"}, "licence.conflict"),
    ],
)  # fmt: skip
def test_terms_block_what_they_forbid(
    tmp_path: Path, licence: str, terms: Terms | None, policy: dict[str, Any], reason: str
) -> None:
    told = {"teacher": terms} if terms is not None else {}
    made = Export(terms=told, licences=LicencePolicy(**policy))
    one = row(item={"licence": licence})
    if reason:
        with pytest.raises(SynthError, match=reason):
            export([one], str(tmp_path / "out"), made)
        left = replace(made, licences=LicencePolicy(**policy, conflicting="leave_out"))
        with pytest.raises(SynthError, match="none of 1 rows"):
            export([one], str(tmp_path / "left"), left)
    else:
        export([one], str(tmp_path / "out"), made)
        assert read(tmp_path / "out")[0]["teachers"] == ["teacher"]


def test_the_strictest_share_alike_licence_travels(tmp_path: Path) -> None:
    made = Export(terms={"teacher": Terms(licence="GPL-3.0-or-later", attribution="Built with G")})
    account = export([row(item={"licence": "CC-BY-SA-4.0"})], str(tmp_path / "out"), made)
    told = read(tmp_path / "out")[0]
    assert (told["licence"], told["attributions"]) == ("GPL-3.0-or-later", ["Built with G"])
    assert account.licences == {"GPL-3.0-or-later": 1}


def pair(chosen: str, rejected: str, number: int = 0) -> Row:
    sides = {"chosen": {"role": "assistant", "content": chosen}, "rejected": {"role": "assistant", "content": rejected}}
    return row(number, kind=SampleKind.PAIR, messages=(USER,), figures={"margin": 0.5}, **sides)


def test_pairs_keep_their_margin_and_equal_sides_are_refused(families: dict[str, Family], tmp_path: Path) -> None:
    rows = [pair("It is 42.", "It is 41."), pair("Same  thing", "Same thing", 1)]
    made = Export(to="dpo", model=families["mistral"].folder, max_refused=0.5, terms=OPEN)
    account = export(rows, str(tmp_path / "out"), made)
    assert account.refused == {"export.equal_sides": 1}
    told = read(tmp_path / "out")[0]
    assert (told["chosen"][0]["content"], told["rejected"][0]["content"], told["margin"]) == (
        "It is 42.",
        "It is 41.",
        0.5,
    )


def test_verifiable_prompts_stand_once_an_item_with_their_verifier(tmp_path: Path) -> None:
    again = replace(row(0).sample, number=1)
    rows = [row(0), replace(row(0), sample=again), row(1)]
    account = export(rows, str(tmp_path / "out"), Export(to="rlvr", terms=OPEN))
    assert (account.written, account.left_out) == (2, {"format.one_an_item": 1})
    told = read(tmp_path / "out")[0]
    assert (told["ground_truth"], told["verifier"], told["dataset"], told["pass_rate"]) == ("42", "math", "math", 0.5)
    assert told["prompt"][-1]["content"] == USER["content"]


def test_items_without_a_gold_and_other_tasks_are_left_out(tmp_path: Path) -> None:
    rows = [row(0), row(1, item={"gold": None}), row(2, item={"verifier": ""}), replace(row(3), task="other")]
    account = export(rows, str(tmp_path / "out"), Export(to="rlvr", tasks=("sums",), terms=OPEN))
    assert account.written == 1
    assert account.left_out == {"item.no_gold": 2, "task.not_asked": 1}


def test_documents_and_labels_and_completions(tmp_path: Path) -> None:
    text = row(kind=SampleKind.DOCUMENT, text="A mill grinds.")
    export([text], str(tmp_path / "documents"), Export(to="documents", terms=OPEN))
    assert read(tmp_path / "documents")[0]["text"] == "A mill grinds."
    label = row(kind=SampleKind.LABEL, text="A mill grinds.", figures={"score": 4.0})
    export([label], str(tmp_path / "labels"), Export(to="labels", terms=OPEN))
    assert read(tmp_path / "labels")[0]["score"] == 4.0
    export([row()], str(tmp_path / "pairs"), Export(to="prompt_completion", file="jsonl", terms=OPEN))
    told = json.loads((tmp_path / "pairs" / "data" / "part-00000.jsonl").read_text())
    assert (told["prompt"], told["completion"][0]["content"]) == ([USER], "It is 42. (0)")


def test_steps_have_a_label_each_and_torn_ones_are_refused(tmp_path: Path) -> None:
    answer = {"role": "assistant", "content": "6 times 7 is 42."}
    told = [{"text": "6 times 7", "soft": 0.5, "hard": True}, {"text": " is 43.", "soft": 0.0, "hard": False}]
    right = row(kind=SampleKind.STEPS, messages=(USER, answer), facts={"steps": json.dumps(told)})
    torn = row(1, kind=SampleKind.STEPS, messages=(USER, answer), facts={"steps": "[{"})
    account = export([right, torn], str(tmp_path / "out"), Export(to="steps", max_refused=0.5, terms=OPEN))
    assert account.refused == {"export.no_steps": 1}
    [made] = read(tmp_path / "out")
    assert made["completions"] == ["6 times 7", " is 43."]
    assert (made["labels"], made["values"]) == ([True, False], [0.5, 0.0])
    assert [turn["content"] for turn in made["prompt"]] == [USER["content"]]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_files_hold_as_many_rows_as_asked_and_the_digest_does_not_depend_on_them(tmp_path: Path, count: int) -> None:
    rows = [row(number) for number in range(count)]
    whole = export(rows, str(tmp_path / "whole"), Export(terms=OPEN))
    cut = export(rows[::-1], str(tmp_path / "cut"), Export(terms=OPEN, part_rows=2))
    assert whole.digest == cut.digest
    files = sorted((tmp_path / "cut" / "data").iterdir())
    assert [pq.read_metadata(file).num_rows for file in files] == [
        min(2, count - start) for start in range(0, count, 2)
    ]


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(SynthError, match="is there already"):
        export([row()], str(tmp_path), Export(terms=OPEN))
    assert (tmp_path / "notes").read_text() == "mine"


def test_a_name_that_no_file_can_hold_is_refused_and_listed(tmp_path: Path) -> None:
    account = export(
        [row(0), row(1, item={"domain": "a\ud800"})], str(tmp_path / "out"), Export(max_refused=0.5, terms=OPEN)
    )
    assert account.refused == {"export.invalid_text": 1}


def test_an_unknown_licence_stays_unknown_on_the_card(tmp_path: Path) -> None:
    made = Export(terms=OPEN, licences=LicencePolicy(unknown="take"))
    assert export([row(item={"licence": ""})], str(tmp_path / "out"), made).licences == {"unknown": 1}
    assert 'license: "other"' in (tmp_path / "out" / "README.md").read_text()


def test_nothing_to_write_is_said_with_the_reasons(tmp_path: Path) -> None:
    with pytest.raises(SynthError, match=r"none of 1 rows can be written as sft: verify.wrong 1"):
        export([row(outcome=Outcome.REJECTED, reason="verify.wrong")], str(tmp_path / "out"), Export(terms=OPEN))


def writable(text: str) -> bool:
    bad = {0xFFFE, 0xFFFF, 0, *range(0xFDD0, 0xFDF0)}
    return not any(ord(one) in bad or 0xD800 <= ord(one) < 0xE000 for one in text)


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_any_text_is_written_as_it_is_or_refused(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("any") / "out"
    rows = [row(n, messages=(USER, {"role": "assistant", "content": text})) for n, text in enumerate(texts)]
    wanted = {f"sums/item-{n}/0": text for n, text in enumerate(texts) if text.strip() and writable(text)}
    if not wanted:
        with pytest.raises(SynthError, match="none of"):
            export(rows, str(folder), Export(max_refused=1.0, terms=OPEN))
        return
    export(rows, str(folder), Export(max_refused=1.0, terms=OPEN))
    assert {one["id"]: one["messages"][-1]["content"] for one in read(folder)} == wanted


def test_the_proof_refuses_what_is_no_answer(families: dict[str, Family]) -> None:
    found = Proof(model=families["chatml"].folder).encode([[dict(USER)]])
    assert isinstance(found[0], RefusedRowError)


def test_the_card_escapes_names_and_shows_figures(tmp_path: Path) -> None:
    facts = {"name": "<script>", "verifiers": {"false positive rate": 0.0125}}
    export([row()], str(tmp_path / "out"), Export(terms=OPEN), facts)
    text = (tmp_path / "out" / "README.md").read_text()
    assert "<script>" not in text
    assert "| false positive rate | 0.0125 |" in text
    assert "| written | 1 |" in text
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert card("sft", told, {}).startswith('---\nlicense: "mit"')

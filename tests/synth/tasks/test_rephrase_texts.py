"""Rules on texts: parts join to the whole, and numbers, names and sentences are told as people would."""

from __future__ import annotations

import gzip
import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from synth.tasks.rephrase_fidelity import Bounds, Seen, chatter, edge_lost, fidelity, leaks
from synth.tasks.rephrase_text import beginning, chunks, names, numbers, numbers_said, sentences, stems, words

ANY = st.text(alphabet=st.sampled_from("ab .!?\n\t-AB1,。漢'\""), max_size=300)


@given(ANY, st.integers(1, 60))
def test_chunks_join_to_the_text_and_none_is_longer_than_allowed(text: str, most: int) -> None:
    made = chunks(text, most)
    assert "".join(made) == text
    assert all(0 < len(one) <= most for one in made)


@given(ANY)
def test_sentences_join_to_the_text(text: str) -> None:
    assert "".join(sentences(text)) == text


def test_chunks_are_cut_between_paragraphs_then_sentences_then_words() -> None:
    paragraphs = ["One two three. Four five six.\n\n", "Seven eight nine. Ten eleven twelve.\n\n", "Thirteen."]
    assert chunks("".join(paragraphs), 70)[0] == paragraphs[0]
    assert chunks("One two three. Four five six. Seven.", 20) == ["One two three. ", "Four five six. ", "Seven."]
    assert all(one.endswith(" ") for one in chunks("word " * 40, 30))
    assert [len(one) for one in chunks("x" * 100, 40)] == [40, 40, 20]
    lengths = [len(one) for one in chunks("A sentence of words. " * 100, 500)]
    assert min(lengths) > 0.7 * max(lengths)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("He came. She went.", 2),
        ("Dr. Smith came at 3.5 to J. R. Jones.", 1),
        ("It cost e.g. ten. Then more.", 2),
        ("What?! No.", 2),
        ('"Stop!" he said.', 1),
        ("Wait... then go.", 1),
        ("一。二。三", 3),
        ("A headline\n\nand its text", 2),
        ("1. First\n2. Second", 1),
        ("", 0),
    ],
)
def test_sentences_end_where_people_end_them(text: str, count: int) -> None:
    assert len(sentences(text)) == count


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1,000.50 and 7", {"1000.5", "7"}),
        ("1.000,5", {"1000.5"}),
        ("3.10 and 3.1", {"3.1"}),
        ("1.5 is not 15", {"1.5", "15"}),
        ("1,234 or 1234", {"1234"}),
        ("\u0663 and \uff13", {"3"}),
        ("1. first\n2) second\n- 3 left", {"3"}),
        ("Q1: who\nA1: 4", {"4"}),
        ("none", set()),
    ],
)
def test_numbers_are_values_and_not_their_spelling(text: str, found: set[str]) -> None:
    assert numbers(text) == found


def test_small_numbers_may_be_spelled_out() -> None:
    assert numbers_said("three of 12, Twelve") == {"3", "12"}
    assert fidelity("It has 3 legs.", "Three legs it has.").number_recall == 1
    assert fidelity("It has 3 legs.", "Four legs it has.").number_recall == 0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("He met Ada Lovelace in London.", {("ada", "lovelace"), ("london",)}),
        ("The Dutch sailed.", {("dutch",)}),
        ("Painting is hard.", set()),
        ("Paris is old. He saw Paris.", {("paris",)}),
        ("NASA's probe left.", {("nasa",)}),
        ("How To Bake Bread At Home", set()),
        ("I said I'm here.", set()),
        ("東京で会った", set()),
    ],
)
def test_names_are_capitalised_within_sentences(text: str, found: set[tuple[str, ...]]) -> None:
    assert names(text) == found


def test_scripts_without_blanks_have_content_words() -> None:
    assert len(stems("政府は新しい政策を発表した")) > 5
    assert stems("governments governing government") == {"govern"}
    assert stems("the of and") == set()


SOURCE = "Ada Lovelace wrote 3 notes in London in 1843. They describe machines of great subtlety."


@pytest.mark.parametrize(
    ("rewriting", "reason"),
    [
        ("In 1843, Ada Lovelace composed 3 notes at London; those describe subtle machines.", ""),
        ("In 1843, Ada Lovelace composed 3 notes.", "fidelity.too_short"),
        ("In 1843 Ada Lovelace composed 3 notes at London describing machines. " * 4, "fidelity.too_long"),
        ("Ada Lovelace composed some notes at London; those describe subtle machines.", "fidelity.numbers_lost"),
        ("In 1843, somebody composed 3 notes somewhere; those describe subtle machines.", "fidelity.names_lost"),
        ("In 1843, Ada Lovelace did 3 things at London; what a nice thing to do it is.", "fidelity.words_lost"),
        (
            "In 1843, Ada Lovelace, 28, composed 3 notes at London; those describe subtle machines.",
            "fidelity.numbers_invented",
        ),
        (
            "In 1843, Ada Lovelace composed 3 notes at London, unlike Charles in Vienna; those describe machines.",
            "fidelity.names_invented",
        ),
        (SOURCE, "fidelity.copied"),
    ],
)
def test_each_way_to_be_unfaithful_has_its_reason(rewriting: str, reason: str) -> None:
    assert Bounds().broken(fidelity(SOURCE, rewriting)) == reason


@pytest.mark.parametrize(
    ("name", "figure", "least", "beyond"),
    [
        ("min_number_recall", "number_recall", 0.5, 0.51),
        ("min_length_ratio", "length_ratio", 1.0, 1.01),
        ("max_length_ratio", "length_ratio", 1.0, 0.99),
        ("min_number_precision", "number_precision", 0.5, 0.51),
        ("max_copied", "copied", 0.0, None),
    ],
)
def test_bounds_have_two_sides(name: str, figure: str, least: float, beyond: float | None) -> None:
    off = ("number_recall", "name_recall", "word_recall", "number_precision", "name_precision", "length_ratio")
    free = {**{f"min_{one}": 0.0 for one in off}, "max_copied": 1.0, "max_length_ratio": 99.0}
    told = fidelity("a 1 b 2", "a 1 b 3")
    assert getattr(told, figure) == least
    assert Bounds(**{**free, name: least}).broken(told) == ""
    if beyond is not None:
        assert Bounds(**{**free, name: beyond}).broken(told).startswith("fidelity.")
    with pytest.raises(ValidationError):
        Bounds(min_number_recall=1.1)


def test_a_sentence_lost_at_an_edge_is_named_by_its_side() -> None:
    first = "The orchard behind the windmill belongs to somebody famous. "
    last = "Visitors admire sculptures carved during winter evenings."
    middle = "Its apples are red. "
    source = first + middle + last
    assert edge_lost(source, "Somebody famous owns the orchard. Visitors admire carved sculptures.", 0.15) == ""
    assert edge_lost(source, "Visitors admire carved sculptures.", 0.15) == "seam.start_lost"
    assert edge_lost(source, "Somebody famous owns the orchard.", 0.15) == "seam.end_lost"
    assert edge_lost(source, "", 0.0) == ""
    assert edge_lost("Short one.", "", 0.5) == ""


def test_sentences_that_were_seen_are_counted() -> None:
    seen = Seen()
    seen.add("This one is long enough to tell. Short one.")
    assert seen.repeats("THIS one is long enough, to tell! Short one. Another that nobody has seen.") == 1
    assert seen.repeats("Twice is once too many here. Twice is once too many here.") == 1


@pytest.mark.parametrize(
    ("text", "is_chatter"),
    [
        ("Here is the rewritten text:\nIt rained.", True),
        ("Here's a simplified version of it.", True),
        ("Sure! Here you go.", True),
        ("Certainly, I can do that.", True),
        ("I'm sorry, but no.", True),
        ("I cannot rewrite this.", True),
        ("**Rewritten text:**\nIt rained.", True),
        ("It rained. Let me know if you need more!", True),
        ("It rained.\n\nNote: I kept all the names.", True),
        ("It rained. I hope this helps.", True),
        ("Here is a town of many bridges.", False),
        ("Sure Start is a programme for children.", False),
        ("Of course it rained.", False),
        ("Great Britain is an island.", False),
        ("Here are the bones of a king.", False),
        ("I rode home.", False),
        ("Great. In the morning it rained.", False),
        ("", False),
    ],
)
def test_an_assistants_voice_is_told_from_prose(text: str, is_chatter: bool) -> None:
    assert chatter(text) is is_chatter
    assert not chatter(text, text)


def test_a_run_of_eight_hidden_words_is_a_leak_and_seven_are_none() -> None:
    hidden = "one two three four five six seven eight nine"
    assert leaks("so one two three, four five six SEVEN eight", hidden)
    assert not leaks("so one two three four five six seven", hidden)
    assert not leaks("one two three four five six seven eight", hidden, known=f"x {hidden}")


@given(st.text(), st.text())
def test_any_two_texts_have_figures(source: str, rewriting: str) -> None:
    told = fidelity(source, rewriting)
    assert all(0 <= value <= 1 for name, value in told.figures().items() if name != "length_ratio")
    Bounds().broken(told)
    chatter(rewriting, source)
    edge_lost(source, rewriting, 0.5)


@pytest.mark.parametrize("text", ["." * 100_000, "a'" * 50_000, "1," * 30_000, "A " * 30_000, '"' * 100_000, "\n" * 99])
def test_no_text_takes_long(text: str) -> None:
    began = time.process_time()
    fidelity(text, text)
    chunks(text, 1500)
    chatter(text)
    assert time.process_time() - began < 5


def planted(source: str, fault: str) -> str | None:
    """A rewriting that keeps all (every fifth word is another word's neighbour), with one fault; None where the source
    offers no place for it."""
    told = sentences(source)
    if fault == "first sentence lost":
        alone = [stems(one) - stems("".join(told[:at] + told[at + 1 :])) for at, one in enumerate(told)]
        first = next((at for at, own in enumerate(alone) if len(own) >= 4), len(told))
        told = told[first + 1 :]
    elif fault == "half lost":
        told = told[: len(told) // 2]
    text = re.sub(r"((?:\S+\s+){4}\S+)", r"\1 indeed", "".join(told))
    if fault == "number changed":
        text, made = re.subn(r"\b\d{3,4}\b", lambda found: str(int(found[0]) + 3), text)
        return text if made else None
    if fault == "names changed":
        text, made = re.subn(r"\b[A-Z][A-Za-z]{2,}", lambda found: found[0][::-1].capitalize(), text)
        return text if made > 3 else None
    return text if told else None


@pytest.mark.parametrize(
    ("fault", "least", "most"),
    [
        ("", 0.0, 0.02),
        ("number changed", 0.95, 1.0),
        ("names changed", 0.75, 1.0),
        ("first sentence lost", 0.75, 1.0),
        ("half lost", 0.9, 1.0),
    ],
)
def test_planted_faults_in_real_texts_are_found(shared: Path, fault: str, least: float, most: float) -> None:
    """Shares of rewritings that are rejected, of encyclopedia entries; the first row is of faultless ones."""
    with gzip.open(shared / "text" / "encyclopedia_en.jsonl.gz", "rt") as lines:
        texts = [json.loads(line)["text"] for line, _ in zip(lines, range(3000), strict=False)]
    sources = [text[:1500] for text in texts if len(text) > 700 and len(sentences(text[:1500])) > 3][:80]
    assert len(sources) == 80
    verdicts = []
    for source in sources:
        text = planted(source, fault)
        if text is not None:
            verdicts.append(bool(Bounds().broken(fidelity(source, text)) or edge_lost(source, text, 0.15)))
    found = sum(verdicts) / len(verdicts)
    assert len(verdicts) >= 20
    assert least <= found <= most, f"{fault or 'faultless'}: {found:.2f} of {len(verdicts)}"


@given(ANY, st.integers(1, 60))
def test_a_beginning_is_whole_sentences_or_as_much_as_may_be(text: str, most: int) -> None:
    found = beginning(text, most)
    assert text.startswith(found)
    assert min(len(text), most) >= len(found) >= min(len(text), most / 2)
    assert beginning("One two. Three four.", 15) == "One two. "


def test_words_are_folded_and_have_no_possessives() -> None:
    assert words("Ada's Straße") == ("ada", "strasse")

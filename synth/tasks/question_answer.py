"""Questions and answers from documents, each answer checked against what it is said to stand on.

Differs from the usual: a pair quotes its evidence, and the quote, the answer's numbers and its names must stand in the
document; a second reading may have to come to the same answer; what repeats an earlier question of the document is
rejected; and a reply without any pair is a rejected sample, not silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Final, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item, Sample
from synth.judges.judging import fence
from synth.prompts import template
from synth.replies import Parsed
from synth.requests import Request
from synth.tasks.asking import Asking, Deciding, filled, given
from synth.tasks.candidates import Candidate, Stage, ask, tokens_of
from synth.tasks.novelty import Pool, words_of
from synth.tasks.question_answer_grounding import agree, answer_fault, question_fault
from synth.tasks.rephrase_text import chunks
from synth.tasks.tagged import every, inside

PARTS: Final = ("question", "answer", "evidence")


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class QuestionAnswer:
    """Ask for questions on each chunk of each row's text, with answers and the words that these stand on.

    pairs: asked for of each chunk. chunk_characters: of a chunk at most; 5 for a token of English. max_characters: of
        a text; longer ones are rejected.
    context: whether the exported prompt holds the chunk, by `context_prompt`; without it, a question that points to a
        text is rejected.
    min_word_recall: share of a longer answer's content words that must be the chunk's or the question's.
    max_likeness: ROUGE-L from which on a question repeats an earlier one of the same text; as in self-instruct.
    reading: have each question answered once more from the chunk, by `reading_prompt`; one that this reader cannot
        answer, or answers otherwise (fewer than min_agreement of the shorter answer's content words), is rejected.
        None for no such reading.
    prompt: template of the pairs. writing: how they are asked for.
    """

    name: ClassVar[str] = "question_answer"
    version: ClassVar[int] = 1

    pairs: int = Field(default=5, ge=1, le=50)
    chunk_characters: int = Field(default=4_000, ge=200)
    max_characters: int = Field(default=200_000, ge=1)
    context: Literal["without", "with"] = "without"
    min_word_recall: float = Field(default=0.6, ge=0, le=1)
    max_likeness: float = Field(default=0.7, gt=0, le=1)
    reading: Deciding | None = None
    min_agreement: float = Field(default=0.5, ge=0, le=1)
    prompt: Annotated[str, given("text", "count", "fence")] = "question_answer_pairs"
    reading_prompt: Annotated[str, given("text", "question", "fence")] = "question_answer_read"
    context_prompt: Annotated[str, given("text", "question")] = "question_answer_context"
    writing: Asking = Field(default_factory=Asking)

    def items(self, rows: Iterable[Item]) -> Iterable[Item]:
        return rows

    def flow(self, item: Item, desk: Desk) -> Flow:
        if not item.text.strip():
            return [Candidate().rejected("item.no_text").sample(item, 0)]
        if len(item.text) > self.max_characters:
            return [Candidate().rejected("item.too_long").sample(item, 0)]
        parts = [part.strip() for part in chunks(item.text, self.chunk_characters) if part.strip()]
        facts = {"prompt": template(self.prompt).title}
        starts = [Candidate(at=at, figures={"chunk": at}, facts=facts) for at in range(len(parts))]
        asked = yield from ask(starts, self.writing, lambda one: self._request(parts[one.at]))
        made = [self._checked(pair, parts[pair.at]) for one in asked for pair in _pairs(one)]
        made = self._new(made)
        if self.reading is not None:
            made = yield from self._read(made, parts, self.reading)
        return [self._sample(item, number, one, parts[one.at]) for number, one in enumerate(made)]

    def _request(self, part: str) -> Request:
        return self.writing.request(filled(self.prompt, text=part, count=self.pairs, fence=fence(part)))

    def _checked(self, pair: Candidate, part: str) -> Candidate:
        if not pair.open:
            return pair
        evidence = pair.facts["evidence"]
        reason = question_fault(pair.text, pair.answer, alone=self.context == "without")
        reason = reason or answer_fault(pair.text, pair.answer, evidence, part, self.min_word_recall)
        return pair.rejected(reason) if reason else pair

    def _new(self, made: Sequence[Candidate]) -> list[Candidate]:
        """Those that repeat an earlier question are rejected; what was rejected before repeats nothing."""
        pool = Pool(self.max_likeness)
        told: list[Candidate] = []
        for one, asked in zip(made, words_of([one.text for one in made]), strict=True):
            if one.open and pool.nearest(asked):
                one = one.rejected("question.repeated")
            if one.open:
                pool.add(asked)
            told.append(one)
        return told

    def _read(self, made: Sequence[Candidate], parts: Sequence[str], reading: Asking) -> Stage:
        def request(one: Candidate) -> Request:
            part = parts[one.at]
            messages = filled(self.reading_prompt, text=part, question=one.text, fence=fence(part, one.text))
            return reading.request(messages)

        read = yield from ask(made, reading, request)
        told: list[Candidate] = []
        for one, other in zip(made, read, strict=True):
            if one.open and other.open and "unanswerable" in other.answer.casefold():
                other = other.rejected("reading.unanswerable")
            elif one.open and other.open and not agree(one.answer, other.answer, self.min_agreement):
                other = other.rejected("reading.disagrees")
            # The reader's own answer decides, and is not the sample's.
            told.append(replace(one, keys=other.keys, outcome=other.outcome, reason=other.reason))
        return told

    def _sample(self, item: Item, number: int, one: Candidate, part: str) -> Sample:
        if one.text and self.context == "with":
            one = replace(one, messages=filled(self.context_prompt, text=part, question=one.text))
        sample = one.sample(item, number)
        return replace(sample, tokens=tokens_of(one.reply, one.answer)) if one.text else sample


def _pairs(made: Candidate) -> list[Candidate]:
    """The pairs of a reply, each a candidate; the reply itself, closed, where there is none."""
    if not made.open or made.parsed is None:
        return [made]
    pairs: list[Candidate] = []
    for told in every(made.answer, "pair"):
        question, answer, evidence = (inside(told, tag) or "" for tag in PARTS)
        pair = replace(
            made, text=question, messages=({"role": "user", "content": question},) if question else (),
            parsed=Parsed(reasoning=None, answer=answer, finish=made.parsed.finish),
            facts={**made.facts, "evidence": evidence},
        )  # fmt: skip
        pairs.append(pair if question and answer and evidence else pair.rejected("parse.pair"))
    return pairs or [made.rejected("parse.no_pair")]

"""Web documents rewritten for pretraining, chunk by chunk, each checked against what it was made of.

Sources: WRAP, Maini et al. 2024 (arXiv:2401.16380): four styles, 300 tokens at a time, for longer parts lose what they
say; Nemotron-CC, Su et al. 2024 (arXiv:2412.02595): five kinds, four of them for good documents; Kimi K2
(arXiv:2507.20534): a long document goes chunk by chunk, with what was written so far in sight, and is checked for
fidelity. Differs from them: prompts are our own; a chunk that fails its checks is asked for again, then it is a hole,
and no text is joined over it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass as plain_dataclass
from dataclasses import field, replace
from typing import Annotated, ClassVar, Final, Literal

from pydantic import ConfigDict, Field, computed_field, model_validator
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item, Outcome, Sample, SampleKind
from synth.judges.judging import fence
from synth.prompts import template
from synth.requests import Message, digest
from synth.tasks.asking import Asking, filled
from synth.tasks.candidates import Candidate, Stage, ask
from synth.tasks.rephrase_fidelity import Bounds, Seen, chatter, edge_lost, fidelity, leaks
from synth.tasks.rephrase_text import chunks


@plain_dataclass(frozen=True, kw_only=True)
class Style:
    """A way to rewrite. characters: of a chunk, 5 for a token of English. continued: shown what was written before."""

    prompt: str
    characters: int
    continued: bool
    bounds: Bounds


def _style(name: str, characters: int, continued: bool, bounds: Bounds) -> Style:
    return Style(prompt=f"rephrase_{name}", characters=characters, continued=continued, bounds=bounds)


_PART: Final = 1_500
_FREER: Final = Bounds(min_number_recall=0.5, min_name_recall=0.6, min_word_recall=0.2, min_length_ratio=0.3)
_PICKED: Final = Bounds(
    min_number_recall=0.3, min_name_recall=0.3, min_word_recall=0.2, max_copied=1.0, min_length_ratio=0.1,
    max_length_ratio=3.0, min_edge_recall=0.0,
)  # fmt: skip
_SHORTER: Final = Bounds(
    min_number_recall=0.5, min_name_recall=0.5, min_word_recall=0.3, min_length_ratio=0.1, max_length_ratio=1.2,
    min_edge_recall=0.0,
)  # fmt: skip
STYLES: Final = {
    "easy": _style("easy", _PART, True, _FREER),
    "medium": _style("medium", _PART, True, Bounds()),
    "hard": _style("hard", _PART, True, replace(_FREER, min_number_recall=0.8, max_length_ratio=2.5)),
    "question_answer": _style("question_answer", _PART, False, _PICKED),
    "wikipedia": _style("wikipedia", _PART, True, Bounds()),
    "diverse_qa": _style("diverse_qa", 4_000, False, _PICKED),
    "distil": _style("distil", 8_000, False, _SHORTER),
    "extract_knowledge": _style("extract_knowledge", 6_000, False, _SHORTER),
    "knowledge_list": _style("knowledge_list", 4_000, False, replace(_SHORTER, max_copied=1.0)),
}
"""WRAP's easy, medium, hard and question_answer; Nemotron-CC's others. The chunks of the condensing ones are longer,
as in Nemotron-CC, to measures of our own."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Rephrase:
    """Rewrite each row's text in each style.

    styles: of STYLES. versions: of each text in each style; Kimi K2 found ten versions read once better than one
        read ten times. prompt: a template of your own instead of the styles'; one style then names its bounds.
    chunk_characters: None takes the style's. context_characters: of what was written so far, shown with the next chunk.
    attempts: at a chunk that fails its checks. bounds: None takes the style's.
    on_failed: of a chunk that fails all attempts. split: what stands before it and behind it are documents of their
        own; reject: so is the whole text, and no further chunk is asked for.
    max_characters: of a text; longer ones are rejected. writing: how it is asked for.
    """

    name: ClassVar[str] = "rephrase"
    version: ClassVar[int] = 1

    styles: Annotated[tuple[str, ...], Field(min_length=1)] = ("wikipedia",)
    versions: int = Field(default=1, ge=1, le=100)
    prompt: str | None = None
    chunk_characters: int | None = Field(default=None, ge=200)
    context_characters: int = Field(default=4_000, ge=0)
    attempts: int = Field(default=2, ge=1, le=20)
    bounds: Bounds | None = None
    on_failed: Literal["split", "reject"] = "split"
    max_characters: int = Field(default=200_000, ge=1)
    writing: Asking = Field(default_factory=Asking)

    @model_validator(mode="after")
    def _known(self) -> Rephrase:
        if unknown := [style for style in self.styles if style not in STYLES]:
            raise ValueError(f"styles: {unknown[0]!r} is none; there are {', '.join(STYLES)}")
        if self.prompt is not None:
            needed = set(template(self.prompt).variables) - set(template(self.prompt).defaults)
            if "text" not in needed or needed - {"text", "earlier", "fence"}:
                raise ValueError(f"prompt {self.prompt!r}: it is given text, earlier and fence, and must read text")
        return self

    @computed_field  # type: ignore[prop-decorator]
    @property
    def prompts_digest(self) -> str:
        """Of the styles' templates: with another one, items are concluded anew."""
        return digest([template(self.prompt or STYLES[style].prompt).digest for style in self.styles])

    def items(self, rows: Iterable[Item]) -> Iterator[Item]:
        """Each row in each style and version."""
        for row in rows:
            for style in dict.fromkeys(self.styles):
                for version in range(self.versions):
                    options = {**row.options, "style": style, "version": version}
                    yield replace(row, id=f"{row.id}/{style}/{version}", options=options, skill=row.skill or style)

    def flow(self, item: Item, desk: Desk) -> Flow:
        if not item.text.strip():
            return [Candidate().rejected("item.no_text").sample(item, 0, SampleKind.DOCUMENT)]
        if len(item.text) > self.max_characters:
            return [Candidate().rejected("item.too_long").sample(item, 0, SampleKind.DOCUMENT)]
        style = STYLES[str(item.options["style"])]
        parts = chunks(item.text, self.chunk_characters or style.characters)
        first = int(item.options["version"]) * self.attempts
        documents, failed, before, broken = [_Document()], [], Seen(), ""
        for at, part in enumerate(parts):
            if not part.strip():
                continue
            tried = yield from self._chunk(style, part, before.repeats(part), documents[-1], first)
            before.add(part)
            failed += [one for one in tried if not one.open]
            if tried[-1].open:
                documents[-1].add(at, part, tried[-1])
                continue
            documents.append(_Document())
            if self.on_failed == "reject":
                broken = "rephrase.chunk_failed"
                break
        documents = [one for one in documents if one.texts]
        samples = [one.sample(item, number, len(parts), broken) for number, one in enumerate(documents)]
        return samples + [_rejected(item, len(samples) + at, one) for at, one in enumerate(failed)]

    def _chunk(self, style: Style, part: str, repeats: int, document: _Document, first: int) -> Stage:
        """The attempts at a chunk, in order; at most the last is open. repeats: of sentences, by the source itself."""
        reference = self.prompt or style.prompt
        earlier = "\n\n".join(document.texts) if style.continued else ""
        earlier = earlier[-self.context_characters :] if self.context_characters else ""
        mark = fence(part, earlier)
        messages = filled(reference, text=part.strip(), earlier=earlier, fence=mark)
        hidden = _said(filled(reference, text="", earlier="", fence=mark))
        tried: list[Candidate] = []
        # What got no reply is asked for again by the next run, under its own key.
        while len(tried) < self.attempts and (not tried or tried[-1].outcome is Outcome.REJECTED):
            start = Candidate(at=first + len(tried), facts={"prompt": template(reference).title})
            made = (yield from ask([start], self.writing, lambda one: self.writing.request(messages, rollout=one.at)))[
                0
            ]
            if made.open and (mark in made.answer or leaks(made.answer, hidden, part)):
                made = made.rejected("leak.prompt")
            made = self._faithful(made, self.bounds or style.bounds, part)
            # A source may repeat itself, and then so may what is made of it.
            tried.append(made.rejected("seam.repeated") if document.seen.repeats(made.answer) > repeats else made)
        return tried

    def _faithful(self, made: Candidate, bounds: Bounds, part: str) -> Candidate:
        if not made.open:
            return made
        if chatter(made.answer, part):
            return made.rejected("leak.chatter")
        told = fidelity(part, made.answer)
        reason = bounds.broken(told) or edge_lost(part, made.answer, bounds.min_edge_recall)
        made = made.told(**told.figures())
        return made.rejected(reason) if reason else made


@plain_dataclass
class _Document:
    """Chunks without a hole between them."""

    texts: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    figures: list[dict[str, float]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    tokens: int = 0
    source: int = 0
    prompt: str = ""
    seen: Seen = field(default_factory=Seen)

    def add(self, at: int, part: str, made: Candidate) -> None:
        self.texts.append(made.answer)
        self.seen.add(made.answer)
        self.keys += made.keys
        self.figures.append(dict(made.figures))
        self.places.append(at)
        self.tokens += made.reply.completion_tokens if made.reply else 0
        self.source += len(part)
        self.prompt = made.facts["prompt"]

    def sample(self, item: Item, number: int, parts: int, broken: str) -> Sample:
        """Its figures are the lowest of its chunks', but for the length's; broken: why it is rejected."""
        text = "\n\n".join(self.texts)
        figures = {name: min(one[name] for one in self.figures) for name in self.figures[0]}
        facts = {
            "style": str(item.options["style"]), "chunks": f"{self.places[0]}-{self.places[-1]} of {parts}",
            "prompt": self.prompt,
        }  # fmt: skip
        return Sample(
            item=item.id, number=number, kind=SampleKind.DOCUMENT, keys=tuple(self.keys), text=text,
            outcome=Outcome.REJECTED if broken else Outcome.ACCEPTED, reason=broken, tokens=self.tokens, facts=facts,
            figures={**figures, "length_ratio": len(text) / max(1, self.source), "chunks": len(self.texts)},
        )  # fmt: skip


def _rejected(item: Item, number: int, made: Candidate) -> Sample:
    """An attempt that failed, with its text."""
    return replace(made.sample(item, number, SampleKind.DOCUMENT), text=made.answer)


def _said(messages: Sequence[Message]) -> str:
    return "\n".join(str(message["content"]) for message in messages)

"""Instructions grown from a few seeds, in rounds, each new one unlike all before it; then an instance of each.

Source: Self-Instruct, Wang et al. 2022 (arXiv:2212.10560): 6 seeds and 2 made instructions in context, ROUGE-L below
0.7 against the pool, words that mean something other than text, at least 4 and at most 150 words; labels first where a
task is a classification, else the input first. Differs from it: rounds ask for several lists at once; what is alike
within a round is settled by digests, so that the order of replies does not matter; and what is rejected is kept.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.errors import SynthError
from synth.flows import Desk, Flow
from synth.items import Item, Sample
from synth.requests import Request, digest
from synth.tasks.asking import Asking, Deciding, filled, given
from synth.tasks.candidates import Candidate, ask, tokens_of
from synth.tasks.novelty import Pool, admitted, words_of
from synth.tasks.tagged import MOST, every, inside, word_of

_WORD = re.compile(r"\w+")
UNTEXTUAL = (
    "image", "images", "graph", "graphs", "picture", "pictures", "file", "files", "map", "maps", "draw", "plot",
    "go to", "video", "audio",
)  # fmt: skip
"""The paper's keywords, and two more kinds of what a text is not."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class SelfInstruct:
    """Grow the rows' prompts, the seeds, to `instructions` new ones; what a round brings beyond that is kept, too.

    requests: lists that are asked for at once, a round; tasks: of each list. rounds: at most. patience: rounds without
        a new instruction before it gives up.
    seeds_shown, made_shown: instructions in context, from the seeds and from those made so far.
    max_rouge_l: likeness to any other from which an instruction is not new. min_words, max_words: of an instruction.
    keywords: words or phrases, for whole words in any case, of instructions that text cannot follow.
    instances: of each instruction. *_prompt: the templates. writing, classifying, answering: how each is asked.
    """

    name: ClassVar[str] = "self_instruct"
    version: ClassVar[int] = 1

    instructions: int = Field(default=1000, ge=1)
    requests: int = Field(default=8, ge=1, le=1024)
    tasks: int = Field(default=8, ge=1, le=50)
    rounds: int = Field(default=1000, ge=1)
    patience: int = Field(default=3, ge=1)
    seeds_shown: int = Field(default=6, ge=1)
    made_shown: int = Field(default=2, ge=0)
    max_rouge_l: float = Field(default=0.7, gt=0, le=1)
    min_words: int = Field(default=4, ge=1)
    max_words: int = Field(default=150, ge=1)
    keywords: tuple[Annotated[str, Field(min_length=1)], ...] = UNTEXTUAL
    instances: int = Field(default=1, ge=1, le=64)
    tasks_prompt: Annotated[str, given("examples", "count")] = "self_instruct_tasks"
    classification_prompt: Annotated[str, given("instruction")] = "self_instruct_classification"
    input_first_prompt: Annotated[str, given("instruction")] = "self_instruct_input_first"
    output_first_prompt: Annotated[str, given("instruction")] = "self_instruct_output_first"
    writing: Asking = Field(default_factory=Asking)
    classifying: Deciding = Field(default_factory=lambda: Deciding(max_tokens=512))
    answering: Asking = Field(default_factory=lambda: Asking(temperature=0.7))

    def items(self, rows: Iterable[Item]) -> Iterator[Item]:
        """One item, the pool, with all seeds; its licence names every seed's. Seeds are few: all are held."""
        seeds: dict[str, Item] = {row.prompt.strip(): row for row in rows if row.prompt.strip()}
        if not seeds:
            raise SynthError("self_instruct: no row has a prompt; the seeds' instructions are wanted as prompts")
        licences = {row.licence for row in seeds.values()}
        # One seed of unknown licence leaves the whole unknown.
        licence = "" if "" in licences else " AND ".join(sorted(licences))
        languages = {row.language for row in seeds.values()}
        yield Item(
            id=f"pool-{digest(list(seeds))[:12]}", options={"seeds": list(seeds)}, licence=licence,
            language=languages.pop() if len(languages) == 1 else "", source="self_instruct",
        )  # fmt: skip

    def flow(self, item: Item, desk: Desk) -> Flow:
        seeds = [str(seed) for seed in item.options["seeds"]]
        pool = Pool(self.max_rouge_l)
        for words in words_of(seeds):
            pool.add(words)
        made: list[str] = []
        samples: list[Sample] = []
        idle = 0
        for number in range(self.rounds):
            candidates = yield from self._round(seeds, made, pool, number, desk.seed)
            new = [one.text for one in candidates if one.open]
            made += new
            candidates = [one.told(round=number, pool=len(pool)) for one in candidates]
            candidates = yield from self._instances(candidates)
            samples += [one.sample(item, len(samples) + at) for at, one in enumerate(candidates)]
            idle = 0 if new else idle + 1
            if len(made) >= self.instructions or idle >= self.patience:
                break
        return samples

    def _round(
        self, seeds: Sequence[str], made: Sequence[str], pool: Pool, number: int, seed: int
    ) -> Generator[Any, Any, list[Candidate]]:
        """A candidate for each instruction of the round's lists, and one for each list that has none."""
        lists = [Candidate(at=number * self.requests + at) for at in range(self.requests)]

        def request(one: Candidate) -> Request:
            rng = np.random.default_rng([seed, one.at])
            examples = [*_drawn(rng, seeds, self.seeds_shown), *_drawn(rng, made, self.made_shown)]
            examples = [examples[at] for at in rng.permutation(len(examples))]
            # The rollout tells equal prompts apart: with few seeds the same examples are drawn again.
            return self.writing.request(filled(self.tasks_prompt, examples=examples, count=self.tasks), rollout=one.at)

        lists = yield from ask(lists, self.writing, request)
        candidates = [one for told in lists for one in self._listed(told)]
        candidates = [self._instruction(one) for one in candidates]
        open_ = [at for at, one in enumerate(candidates) if one.open]
        for at, reason in zip(open_, admitted(pool, [candidates[at].text for at in open_]), strict=True):
            if reason is not None:
                candidates[at] = candidates[at].rejected(reason)
        return candidates

    def _listed(self, told: Candidate) -> list[Candidate]:
        if not told.open:
            return [told]
        texts = every(told.answer, "task", most=MOST)
        alone = replace(told, reply=None, parsed=None)
        return [replace(alone, text=text) for text in texts] or [told.rejected("parse.no_tag")]

    def _instruction(self, one: Candidate) -> Candidate:
        """Rejected for the first rule that its text breaks."""
        if not one.open:
            return one
        count = len(one.text.split())
        if count < self.min_words and not _unspaced(one.text):
            return one.rejected("instruction.too_short")
        if count > self.max_words or len(one.text) > 20 * self.max_words:
            return one.rejected("instruction.too_long")
        if not one.text[0].isalnum() and one.text[0] not in "\"'([{¿¡«“":
            return one.rejected("instruction.starts_with_a_symbol")
        return one.rejected("instruction.keyword") if self._keyword(one.text) else one

    def _keyword(self, text: str) -> bool:
        words = f" {' '.join(_WORD.findall(text.casefold()))} "
        return any(f" {keyword.casefold()} " in words for keyword in self.keywords)

    def _instances(self, candidates: Sequence[Candidate]) -> Generator[Any, Any, list[Candidate]]:
        """Classify the instructions that are new, then make each one's instances, label first or input first."""
        texts = [one.text for one in candidates]
        asked = yield from ask(
            candidates, self.classifying,
            lambda one: self.classifying.request(filled(self.classification_prompt, instruction=one.text)),
        )  # fmt: skip
        said = [_classified(replace(one, text=text)) for one, text in zip(asked, texts, strict=True)]
        several = [replace(one, at=at) for one in said for at in range(self.instances if one.open else 1)]

        def request(one: Candidate) -> Request:
            prompt = self.output_first_prompt if one.figures["classification"] else self.input_first_prompt
            return self.answering.request(filled(prompt, instruction=one.text), rollout=one.at)

        several = yield from ask(several, self.answering, request)
        return [_instance(one) for one in several]


def _drawn(rng: np.random.Generator, texts: Sequence[str], most: int) -> list[str]:
    """Some of the texts, none twice."""
    return [texts[int(at)] for at in rng.choice(len(texts), size=min(most, len(texts)), replace=False)]


def _unspaced(text: str) -> bool:
    """Whether a text is of a script without spaces between words, where words cannot be counted by them."""
    return sum("\u3040" <= character <= "\u9fff" or "\u0e00" <= character <= "\u0eff" for character in text) >= 4


def _classified(one: Candidate) -> Candidate:
    if not one.open:
        return one
    said = word_of(one.answer, ("yes", "no"))
    return one.rejected("parse.neither_yes_nor_no") if said is None else one.told(classification=said == "yes")


def _instance(one: Candidate) -> Candidate:
    """With its instruction and input as the user's turn and the output as the answer, or rejected."""
    if not one.open or one.reply is None or one.parsed is None:
        return one
    output, given_ = inside(one.answer, "output"), inside(one.answer, "input") or ""
    if output is None:
        return one.rejected("parse.no_tag")
    content = f"{one.text}\n\n{given_}" if given_ else one.text
    reply = replace(one.reply, completion_tokens=tokens_of(one.reply, output))
    made = replace(
        one, messages=({"role": "user", "content": content},), reply=reply,
        parsed=replace(one.parsed, answer=output, reasoning=None),
    )  # fmt: skip
    if not output:
        return made.rejected("instance.no_output")
    return made.rejected("instance.repeats_input") if output == given_ else made

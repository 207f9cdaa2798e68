"""Settings of selection: each filter is one key, absent where it is off."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from synth.errors import SynthError

Share = Annotated[float, Field(ge=0, le=1)]
_FORBID = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=_FORBID)
class Difficulty:
    """Items by the share of their judged rollouts that were right.

    min_pass_rate, max_pass_rate: both ends are kept. Magistral (arXiv:2506.10910, section 4) drops what is never and
    what is always solved. min_judged: items with fewer judged rollouts pass unseen; a few say little: of 4 rollouts an
    item that is solved half of the time fails all 1 time in 16.
    """

    min_pass_rate: Share = 0.0
    max_pass_rate: Share = 1.0
    min_judged: int = Field(default=4, ge=1)

    @model_validator(mode="after")
    def _ordered(self) -> Difficulty:
        if self.min_pass_rate > self.max_pass_rate:
            raise ValueError("min_pass_rate: is above max_pass_rate, so nothing would be left")
        return self


@dataclass(frozen=True, kw_only=True, config=_FORBID)
class Traces:
    """What a model wrote (reasoning and answer) that is degenerate.

    max_tokens, min_tokens: completion tokens. max_duplicate_5gram_share: characters within repeated 5-grams, as Gopher
        counts them (Rae et al. 2021, table A1: .15 for web pages; reasoning repeats its terms more, so the default is
        higher). max_repeated_sentences: times one sentence follows itself; max_scattered_sentences: times it stands at
        all (open-instruct's filter of traces: 4 and 20; lists and mathematics reach them by right).
    max_loop_characters: of a trace's end that one piece, repeated, fills: a model that could not stop.
    max_foreign_share: letters of another script than the prompt's scripts and Latin, as a share of all letters
        (open-instruct: 5% Chinese in an English trace). max_paragraph_characters: without a line's end.
    """

    min_tokens: int = Field(default=1, ge=0)
    max_tokens: int = Field(default=1 << 20, ge=1)
    max_duplicate_5gram_share: Share = 0.5
    max_repeated_sentences: int = Field(default=4, ge=1)
    max_scattered_sentences: int = Field(default=20, ge=1)
    max_loop_characters: int = Field(default=200, ge=1)
    max_foreign_share: Share = 0.05
    max_paragraph_characters: int = Field(default=20_000, ge=1)


@dataclass(frozen=True, kw_only=True, config=_FORBID)
class NearDuplicates:
    """Items whose prompts are near duplicates of another's, verified; the longest prompt stays with its samples.

    ngram: words a shingle. verify: exact Jaccard similarity from which two are the same. Prompts are short: shingles of
    3 words tell two word problems with other numbers apart less than shingles of 5 do.
    """

    ngram: int = Field(default=3, ge=1)
    verify: Share = 0.8


@dataclass(frozen=True, kw_only=True, config=_FORBID)
class Contamination:
    """Samples that hold an item of a benchmark, in the prompt, the answer or a rubric (all that is exported of them).

    benchmarks: patterns of files as the step decontaminate reads them. rules: its further settings.
    """

    benchmarks: tuple[str, ...] = Field(min_length=1)
    rules: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, config=_FORBID)
class Balance:
    """Shares of loss-bearing tokens by one or several keys, reached by leaving samples out, never by repeating them.

    targets: {key: {value: share}}; keys are domain, skill, language, source, task, kind and difficulty (hard, medium,
        easy or unknown: pass rates up to 1/3, 2/3, 1). Shares of a key sum to 1; what is not named has no place.
    general_domains, general_share: the domains of general data, and the share of tokens that it is to have (Magistral
        mixes in 10%).
    tolerance: what a share may be off without being told.
    """

    targets: dict[str, dict[str, Share]] = Field(default_factory=dict)
    general_domains: tuple[str, ...] = ()
    general_share: Share | None = None
    tolerance: Share = 0.02

    @model_validator(mode="after")
    def _whole(self) -> Balance:
        for key, shares in self.targets.items():
            if key not in KEYS:
                raise ValueError(f"targets: no key {key!r}; there are {', '.join(KEYS)}")
            if abs(sum(shares.values()) - 1) > 1e-6:
                raise ValueError(f"targets.{key}: shares sum to {sum(shares.values()):.6f}; they sum to 1")
        if (self.general_share is None) != (not self.general_domains):
            raise ValueError("general_share: goes with general_domains; give both or none")
        return self


KEYS = ("domain", "skill", "language", "source", "task", "kind", "difficulty")
Filter = Literal["difficulty", "traces", "contamination", "near_duplicates", "balance"]


@dataclass(frozen=True, kw_only=True, config=_FORBID)
class Selection:
    """Which accepted samples are kept. Filters apply in this order, the last two to what the others leave.

    seed: of the balance's choice among equals.
    """

    difficulty: Difficulty | None = None
    traces: Traces | None = None
    contamination: Contamination | None = None
    near_duplicates: NearDuplicates | None = None
    balance: Balance | None = None
    seed: int = Field(default=0, ge=0)

    def files(self) -> tuple[str, ...]:
        """The benchmark files of the contamination filter. Raises SynthError for a pattern that names none."""
        if self.contamination is None:
            return ()
        from dedup import benchmark_files

        try:
            return benchmark_files(self.contamination.benchmarks)
        except ValueError as error:
            raise SynthError(f"select.contamination: {error}") from None

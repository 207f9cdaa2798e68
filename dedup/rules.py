"""When a benchmark item counts as found in a text."""

from __future__ import annotations

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Rules:
    """The policy of `ContaminationIndex` and the step `decontaminate`.

    A prompt of at least `ngram` words is found by its windows of that many words: the words that they cover, close
    together, must be all of its words up to 16, and the share min_score from 50 on. A shorter prompt is found whole.
    It counts by itself where it has min_words words or, with digits or symbols between the words that agree too, 8
    bytes; where it has less, or several other prompts contain it, an answer or a choice must stand near it. A prompt
    of one plain word is never looked for.

    ngram: words of a window. min_score: 0..1. near_words: how far an answer may be, beside the length of all choices.
    max_items: windows that more items of one benchmark share are its boilerplate (imports, "which of the following"),
    and tell nothing.
    """

    ngram: int = Field(default=8, ge=2, le=50)
    min_score: float = Field(default=0.6, gt=0, le=1)
    min_words: int = Field(default=5, ge=1, le=50)
    near_words: int = Field(default=20, ge=0, le=1000)
    max_items: int = Field(default=10, ge=1)

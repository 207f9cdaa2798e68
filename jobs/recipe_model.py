"""What a checked recipe is: its settings, its sources and its steps, frozen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from jobs.sizes import parse_size

if TYPE_CHECKING:
    from ingest import Source
    from mixing.loop import Mix
    from shards.step import CorpusStep, Step
    from synth.running import Synth
    from train import Pretrain, Tokens

    AnyStep = Step | CorpusStep
else:
    Source = Tokens = Mix = Pretrain = Synth = AnyStep = Any

Size = Annotated[int, BeforeValidator(parse_size)]

SECTIONS = ("sources", "steps", "tokens", "mix", "train", "synth")


MAX_NAME = 200
"""Letters (ASCII) of a name: file systems take 255, and a step's folder adds its number."""


def _run_name(name: str) -> str:
    if len(name) > MAX_NAME:
        raise ValueError(f"is {len(name)} letters long; a name has at most {MAX_NAME}")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ValueError(f"{name!r} is no name of a run; use letters, digits, . _ and -, no spaces")
    return name


_CONFIG = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


@dataclass(frozen=True, kw_only=True, config=_CONFIG)
class Settings:
    """The top-level keys of a recipe that are plain values."""

    name: Annotated[str, AfterValidator(_run_name)]
    """What the run is called: letters, digits, `.`, `_`, `-`."""
    output: str = Field(min_length=1)
    """The folder or fsspec URL that everything is written under."""
    seed: int = Field(default=0, ge=0, lt=1 << 63)
    """The one source of randomness; each step uses hash(seed, step name)."""
    keep: Literal["last", "all"] = "all"
    """Which groups' data stay after success: the last one's or all."""
    keep_dropped: float = Field(default=1.0, ge=0.0, le=1.0)
    """Share (0..1) of dropped rows that keep their text; the rows themselves are always kept."""
    max_quarantined: float = Field(default=0.001, ge=0.0, le=1.0)
    """Share (0..1) of records that may be quarantined, and of input files that may be damaged, before exit 3."""
    shard_bytes: Size = Field(default=64 << 20, ge=1 << 10)
    """Bytes of input, as they are stored, that one shard is made from: a number or 64MiB."""
    memory_bytes: Size = Field(default=1 << 30, ge=64 << 20)
    """A worker's share of memory for sorts and joins: a number or 1GiB."""


@dataclass(frozen=True, kw_only=True, config=_CONFIG)
class StepEntry:
    """One entry of `steps:`: the constructed step and the settings that all steps share.

    name: unique in the recipe; the kind unless the recipe says otherwise.
    domains: only rows of these mixing domains go through the step, others pass untouched; None = all rows.
    line: where in the recipe it stands, for messages; 0 when no file holds it.
    """

    kind: str
    name: str
    step: AnyStep
    domains: tuple[str, ...] | None = None
    line: int = 0


@dataclass(frozen=True, kw_only=True, config=_CONFIG)
class Recipe(Settings):
    """A checked recipe: every setting is in range and every step is constructed.

    document: the recipe as plain values, with --set and environment in place; `build(document)` gives the same recipe.
    path: the file it came from, for messages.
    """

    sources: tuple[Source, ...]
    steps: tuple[StepEntry, ...]
    tokens: Tokens | None = None
    mix: Mix | None = None
    train: Pretrain | None = None
    synth: Synth | None = None
    document: dict[str, Any] = Field(default_factory=dict, repr=False)
    path: str = "recipe"


KEYS = (*Settings.__dataclass_fields__, *SECTIONS)

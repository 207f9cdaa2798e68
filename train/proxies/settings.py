"""Settings of a swarm of proxies: which mixtures, which sizes, which seeds, and what they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from train.pretrain.guard import SpikeGuard
from train.pretrain.optimisation import FREE_TO_CHANGE, Count, Optimisation
from train.pretrain.settings import Pretrain

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Tokens = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}$")]
Seed = Annotated[int, Field(ge=0, lt=1 << 63)]


class ProxyError(ValueError):
    """Proxies that cannot be run as asked: one line that says where, what is wrong, and what would be right."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class ProxySize:
    """The shape of a proxy, as ModelSettings names it; the vocabulary is the tokens'.

    tokens: of runs of this size, instead of what Proxies says; so one shape may stand under several names, each with
    another length.
    """

    layers: Count
    width: Count
    heads: Count
    key_value_heads: Count | None = None
    feed_forward_width: Count | None = None
    tokens: Count | None = None


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Proxies(Optimisation):
    """Train a small model on each of many mixtures; the settings of the loop are Optimisation's.

    mixtures: {domain: weight} each, or {name: {domain: weight}}; a domain that is left out has weight 0, and weights
        sum to 1 within 0.001. A mixture without a name is named after its weights, so that the same mixture is the same
        run whatever the order.
    mixtures_file: more of them, from CSV or Parquet (a column a domain, a row a mixture, and a column `mixture` for
        names if you like) or YAML or JSON (a list or a map, as here); a path or URL.
    sizes: shapes by name. seeds: each mixture and size is trained with each (initial weights and order of data).
    tokens, tokens_per_parameter: length of a run, exactly one; parameters are all there are, the embedding's too.
    mup_base_width: the width that learning_rate holds at; muP carries it over to every other width. None is the
        standard parametrisation, where a rate that fits one width fits no other.
    target_tokens: length of the run that the mixture is for. Each domain is then cut to the share of its tokens that
        the proxy is of the target, so that the proxy sees a domain's tokens as often as the target will: mixtures that
        look best with all fresh tokens are not the best once scarce domains repeat (arXiv:2606.07597).
    target_unique_tokens: what the target will have by domain, where that is not what these shards hold.
    target_epochs: or the epochs outright, one number or by domain (those left out are not cut).
    max_epochs: as Pretrain's; what a spent domain cannot give goes to the others, which is another mixture than asked:
        the table says what was trained.
    held_out, sequence_tokens, batch_sequences, packing, overflow, isolate, tie_embeddings, rope_theta: as Pretrain's,
        the same for all runs.
    evaluation_sequences: as Pretrain's; the held-out text is the same for all runs.
    workers: runs at a time, each in a process of its own that goes from run to run; 0 trains in the calling process.
    threads: of each (1: two processes on two cores are faster than one with two threads).
    keep_models: keep each run's model in OUT/runs/NAME/model; else only what was measured stays.
    """

    mixtures: tuple[dict[str, Weight], ...] | dict[Name, dict[str, Weight]] = ()
    mixtures_file: str | None = None
    sizes: dict[Name, ProxySize] = Field(min_length=1)
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] = (0,)
    tokens: Count | None = None
    tokens_per_parameter: Tokens | None = None
    mup_base_width: Count | None = 128
    target_tokens: Tokens | None = None
    target_unique_tokens: dict[str, Tokens] | None = None
    target_epochs: Tokens | dict[str, Tokens] | None = None
    max_epochs: Tokens | dict[str, Tokens] | None = None
    held_out: float = Field(default=0.05, gt=0, lt=1)
    sequence_tokens: int = Field(default=512, ge=2)
    batch_sequences: Count = 16
    packing: Literal["concat", "best_fit"] = "concat"
    overflow: Literal["split", "crop", "drop"] = "split"
    isolate: bool = True
    tie_embeddings: bool = True
    rope_theta: float = Field(default=10_000.0, gt=0)
    evaluation_sequences: Count | None = 256
    workers: int = Field(default=1, ge=0)
    threads: Count | None = 1
    keep_models: bool = False
    warmup_steps: int = Field(default=20, ge=0)
    decay_share: float = Field(default=0.2, ge=0, le=1)
    keep_checkpoints: Count | None = 1
    evaluate_every_steps: Count | None = None
    guard: SpikeGuard | None = None

    @model_validator(mode="after")
    def _whole(self) -> Proxies:
        if (self.tokens is None) == (self.tokens_per_parameter is None):
            raise ValueError("tokens, tokens_per_parameter: give exactly one of them, as the length of a run")
        if not self.mixtures and self.mixtures_file is None:
            raise ValueError("mixtures: none; give a list of {domain: weight}, or mixtures_file")
        if self.target_tokens is not None and self.target_epochs is not None:
            raise ValueError("target_tokens, target_epochs: give one of them; epochs follow from the target's tokens")
        if self.target_unique_tokens is not None and self.target_tokens is None:
            raise ValueError("target_unique_tokens: needs target_tokens, the length of the target's run")
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError(f"seeds: {list(self.seeds)} has one twice; the same seed gives the same run")
        return self


# What tells runs apart, each with a name of its own, and what does not change what a run measures.
OF_RUNS = frozenset({"mixtures", "mixtures_file", "sizes", "seeds", "seed"})
FREE = FREE_TO_CHANGE | {"workers", "keep_models"}


def shared_settings(settings: Proxies) -> dict[str, Any]:
    """What all runs of one folder must have in common, as JSON."""
    from pydantic import TypeAdapter

    told: dict[str, Any] = TypeAdapter(Proxies).dump_python(settings, mode="json")
    return {name: value for name, value in sorted(told.items()) if name not in OF_RUNS | FREE}


def pretrain_settings(
    settings: Proxies, size: ProxySize, weights: Mapping[str, float], *, seed: int, steps: int
) -> Pretrain:
    """One run as pretraining has it."""
    common = {field.name for field in fields(Pretrain)} & {field.name for field in fields(Proxies)}
    told = {name: getattr(settings, name) for name in common - {"tokens", "seed", "workers"}}
    shape = {
        name: getattr(size, name) for name in ("layers", "width", "heads", "key_value_heads", "feed_forward_width")
    }
    return Pretrain(**told, **shape, weights=dict(weights), seed=seed, steps=steps, workers=0)

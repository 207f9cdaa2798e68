"""The shape of a model: what a checkpoint's config.json says, and how widths are transferred."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

FEED_FORWARD_MULTIPLE = 64


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class RopeScaling:
    """Llama 3.1's stretched rotary frequencies (its config's rope type "llama3").

    factor: how much slower the slow frequencies turn. low_frequency_factor, high_frequency_factor: wavelengths above
        original_max_positions / low are stretched wholly, those below original_max_positions / high not at all,
        linearly between. Defaults: Llama 3.1's published config.json.
    """

    factor: float = Field(default=8.0, ge=1)
    low_frequency_factor: float = Field(default=1.0, gt=0)
    high_frequency_factor: float = Field(default=4.0, gt=0)
    original_max_positions: int = Field(default=8192, ge=1)

    @model_validator(mode="after")
    def _ordered(self) -> RopeScaling:
        if self.high_frequency_factor <= self.low_frequency_factor:
            raise ValueError("high_frequency_factor must be larger than low_frequency_factor")
        return self


class Shape(NamedTuple):
    """The sizes of a model with every default worked out."""

    vocab_size: int
    layers: int
    width: int
    heads: int
    key_value_heads: int
    head_width: int
    feed_forward_width: int


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class ModelSettings:
    """A decoder-only transformer of the Llama family; `shape` has the defaults worked out.

    vocab_size: rows of the embedding, at least the tokenizer's. layers, width, heads: as usual; width is a multiple of
        heads, as transformers asks. key_value_heads: groups of shared keys and values, a divisor of heads (None: one a
        head).
    head_width: None is width / heads. feed_forward_width: None is 8/3 of width, rounded up to a multiple of 64
        (SwiGLU at the parameters of a 4 x width layer; Touvron et al. 2023, arXiv:2302.13971, section 2.2).
    tie_embeddings: the readout is the embedding. query_key_value_bias: biases there and nowhere else (Qwen 2).
    rope_theta, rope_scaling, norm_epsilon: Su et al. 2021 (arXiv:2104.09864); None = not scaled.
    max_positions: told to other libraries; nothing here breaks beyond it.
    initial_deviation: of embedding and readout at the start (0.02: GPT-2, Llama's configs). zero_readout: an untied
        readout starts at 0 instead, which muP permits and which leaves no trace of the start in the logits.
    mup_base_width: the width at which learning rates were found; None is the standard parametrisation. See
        parametrisation.py. mup_base_head_width: the head width then; None: heads keep their width and grow in number.
    """

    vocab_size: int = Field(ge=2)
    layers: int = Field(ge=1)
    width: int = Field(ge=2)
    heads: int = Field(ge=1)
    key_value_heads: int | None = Field(default=None, ge=1)
    head_width: int | None = Field(default=None, ge=2)
    feed_forward_width: int | None = Field(default=None, ge=1)
    tie_embeddings: bool = True
    query_key_value_bias: bool = False
    rope_theta: float = Field(default=10_000.0, gt=1)
    rope_scaling: RopeScaling | None = None
    norm_epsilon: float = Field(default=1e-5, gt=0)
    max_positions: int = Field(default=2048, ge=1)
    initial_deviation: float = Field(default=0.02, ge=0)
    zero_readout: bool = False
    mup_base_width: int | None = Field(default=None, ge=1)
    mup_base_head_width: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _fits(self) -> ModelSettings:
        if self.width % self.heads:
            raise ValueError(f"heads: {self.heads} do not divide width {self.width}")
        shape = self.shape
        if shape.heads % shape.key_value_heads:
            raise ValueError(f"key_value_heads: {shape.key_value_heads} do not divide heads {shape.heads}")
        if shape.head_width % 2:
            raise ValueError(f"head_width: {shape.head_width} is odd; rotary positions turn pairs")
        if self.zero_readout and self.tie_embeddings:
            raise ValueError("zero_readout: needs tie_embeddings false; a tied readout is the embedding")
        if self.mup_base_head_width is not None and self.mup_base_width is None:
            raise ValueError("mup_base_head_width: needs mup_base_width")
        return self

    @property
    def shape(self) -> Shape:
        multiple = FEED_FORWARD_MULTIPLE
        return Shape(
            vocab_size=self.vocab_size,
            layers=self.layers,
            width=self.width,
            heads=self.heads,
            key_value_heads=self.key_value_heads or self.heads,
            head_width=self.head_width or self.width // self.heads,
            feed_forward_width=self.feed_forward_width or multiple * math.ceil(8 * self.width / (3 * multiple)),
        )

    def at_width(self, width: int) -> ModelSettings:
        """The same model wider or narrower: its heads keep their width and change in number, groups alike; with
        mup_base_head_width the heads keep their number and change in width. A feed-forward width that was given keeps
        its ratio."""
        shape, wider = self.shape, width / self.width
        heads = wider if self.mup_base_head_width is None else 1.0
        asked = {
            "heads": shape.heads * heads,
            "key_value_heads": shape.key_value_heads * heads,
            "head_width": shape.head_width * wider / heads,
            "feed_forward_width": None if self.feed_forward_width is None else self.feed_forward_width * wider,
        }
        for name, size in asked.items():
            if size is not None and size != round(size):
                raise ValueError(
                    f"width {width}: {name} would be {size:g}; take a multiple of {self.width} or other heads"
                )
        whole: dict[str, Any] = {name: None if size is None else round(size) for name, size in asked.items()}
        return dataclasses.replace(self, width=width, **whole)

    @property
    def width_ratio(self) -> float:
        """muP's m: how many times wider than the base; 1 in the standard parametrisation."""
        return 1.0 if self.mup_base_width is None else self.width / self.mup_base_width

    @property
    def output_multiplier(self) -> float:
        """What the readout's input is multiplied by: 1 / m."""
        return 1.0 / self.width_ratio

    @property
    def attention_scale(self) -> float:
        """What queries times keys is multiplied by: 1/sqrt(d) at the base head width, falling as 1/d from there."""
        head = self.shape.head_width
        return math.sqrt(self.mup_base_head_width or head) / head

"""How many parameters and how many operations, exactly and by part; no torch needed, so that budgets may ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from train.model.settings import ModelSettings


class Parameters(NamedTuple):
    """Parameters by part; a tied readout counts as 0, its weights being the embedding's."""

    embedding: int
    attention: int
    feed_forward: int
    norms: int
    readout: int

    @property
    def total(self) -> int:
        return sum(self)

    @property
    def without_embeddings(self) -> int:
        """Kaplan et al. 2020's count: neither embedding nor readout."""
        return self.attention + self.feed_forward + self.norms


class Operations(NamedTuple):
    """Floating-point operations (a multiplication and an addition are 2) of matrix products, by part.

    Norms, rotations, softmax and activations are left out, as in every published count: some width x layers a token.
    """

    attention_projections: float
    attention_scores: float
    feed_forward: float
    readout: float

    @property
    def total(self) -> float:
        return sum(self)

    def times(self, factor: float) -> Operations:
        return Operations(*(part * factor for part in self))


def parameters(settings: ModelSettings) -> Parameters:
    """The model's parameters, as sum(p.numel() for p in model.parameters()) counts them."""
    shape = settings.shape
    queries, groups = shape.heads * shape.head_width, shape.key_value_heads * shape.head_width
    biases = queries + 2 * groups if settings.query_key_value_bias else 0
    return Parameters(
        embedding=shape.vocab_size * shape.width,
        attention=shape.layers * (2 * shape.width * (queries + groups) + biases),
        feed_forward=shape.layers * 3 * shape.width * shape.feed_forward_width,
        norms=(2 * shape.layers + 1) * shape.width,
        readout=0 if settings.tie_embeddings else shape.vocab_size * shape.width,
    )


def forward_operations(settings: ModelSettings, document_tokens: Sequence[int]) -> Operations:
    """Of one forward pass over documents of these lengths that do not see each other; a packed row is a list of them.

    A document of n tokens has n (n + 1) / 2 pairs of a query and a key it sees; a kernel that skips no masked block
    does more. Each pair costs 2 head widths for the score and 2 for the value, in each head and layer.
    """
    shape = settings.shape
    tokens = sum(document_tokens)
    pairs = sum(length * (length + 1) // 2 for length in document_tokens)
    queries, groups = shape.heads * shape.head_width, shape.key_value_heads * shape.head_width
    return Operations(
        attention_projections=2.0 * tokens * shape.layers * 2 * shape.width * (queries + groups),
        attention_scores=4.0 * pairs * shape.layers * queries,
        feed_forward=2.0 * tokens * shape.layers * 3 * shape.width * shape.feed_forward_width,
        readout=2.0 * tokens * shape.vocab_size * shape.width,
    )


def training_operations(
    settings: ModelSettings, document_tokens: Sequence[int], *, recomputed: bool = False
) -> Operations:
    """Of forward and backward: each product is made once forward and twice backward (its two gradients).

    recomputed: with activation checkpointing, every layer's forward pass runs a second time (not the readout's).
    """
    once = forward_operations(settings, document_tokens)
    if not recomputed:
        return once.times(3)
    return once.times(4)._replace(readout=3 * once.readout)

"""FLOPs of a token from the shape of a model, nothing left out: attention, packing, the head.

A matrix multiplication of m weights costs 2 m a token forwards and 4 m backwards. What this counts, and what the
habitual 6 N leaves out or in: the LM head's d V always (it dominates small proxies), the embedding never (a lookup),
attention's scores and mixing, 12 L d T a token in training with full attention and half of that with causal attention
(Chowdhery et al. 2022, arXiv:2204.02311, appendix B), where d is the width of all query heads together. In packed rows
that isolate their documents, T becomes sum(l^2) / sum(l) over the documents' lengths l.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from train.compute.numbers import BudgetError

BACKWARD: Final = 3.0  # forwards and backwards against forwards alone
STATE_BYTES: Final = (
    16.0  # a parameter: fp32 weights, gradients and AdamW's two moments (bf16 autocast adds activations)
)


@dataclass(frozen=True, kw_only=True)
class ModelShape:
    """A decoder-only transformer, as ModelSettings of train.model name it.

    heads: of queries; key_value_heads: None for as many. head_width: None for width / heads. feed_forward_width: None
    for 8/3 of the width, rounded up to a multiple of 64 (what ModelSettings does). feed_forward_matrices: 3 for
    SwiGLU, 2 for a plain one. tie_embeddings: the head's weights are the embedding's: fewer parameters, the same FLOPs.
    """

    vocab_size: int
    layers: int
    width: int
    heads: int
    key_value_heads: int | None = None
    head_width: int | None = None
    feed_forward_width: int | None = None
    feed_forward_matrices: int = 3
    tie_embeddings: bool = True

    def __post_init__(self) -> None:
        for name in ("vocab_size", "layers", "width", "heads", "key_value_heads", "head_width", "feed_forward_width"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise BudgetError(f"shape.{name}: {value!r} is not a whole number above 0")
        if self.feed_forward_matrices not in (2, 3):
            raise BudgetError(f"shape.feed_forward_matrices: {self.feed_forward_matrices} is neither 3 (SwiGLU) nor 2")
        if self.head_width is None and self.width % self.heads:
            raise BudgetError(f"shape.heads: {self.heads} does not divide width {self.width}; take a multiple of it")
        if self.heads % self.groups:
            raise BudgetError(f"shape.key_value_heads: {self.key_value_heads} does not divide heads {self.heads}")

    @property
    def groups(self) -> int:
        return self.key_value_heads or self.heads

    @property
    def attention_width(self) -> int:
        """Width of all query heads together."""
        return self.heads * (self.head_width or self.width // self.heads)

    @property
    def hidden(self) -> int:
        return self.feed_forward_width or -(-8 * self.width // 3 // 64) * 64

    @property
    def layer_weights(self) -> int:
        """Weights of all layers' matrices."""
        key_value = self.attention_width // self.heads * self.groups
        attention = 2 * self.width * (self.attention_width + key_value)
        return self.layers * (attention + self.feed_forward_matrices * self.width * self.hidden)

    @property
    def head_weights(self) -> int:
        return self.width * self.vocab_size

    @property
    def parameters(self) -> int:
        """Every parameter: matrices, norms' gains, embedding, and the head where it is not tied."""
        gains = (2 * self.layers + 1) * self.width
        return self.layer_weights + gains + self.head_weights * (1 if self.tie_embeddings else 2)


@dataclass(frozen=True, kw_only=True)
class TokenFlops:
    """FLOPs of one training token. mean_context: T, or sum(l^2) / sum(l) where packed documents are isolated."""

    layers: float
    head: float
    attention: float
    mean_context: float

    @classmethod
    def of(cls, shape: ModelShape, mean_context: float, causal: bool = True) -> TokenFlops:
        full = 12.0 * shape.layers * shape.attention_width * mean_context
        return cls(
            layers=6.0 * shape.layer_weights,
            head=6.0 * shape.head_weights,
            attention=full / 2 if causal else full,
            mean_context=mean_context,
        )

    @property
    def train(self) -> float:
        return self.layers + self.head + self.attention

    @property
    def inference(self) -> float:
        """Forwards alone, a token with the same mean context."""
        return self.train / BACKWARD

    @property
    def attention_share(self) -> float:
        """Attention's scores and mixing against the layers' matrices (without the head)."""
        return self.attention / self.layers


def mean_square_length(lengths: list[int]) -> float:
    """sum(l^2) / sum(l): what takes the place of T where packed documents are isolated."""
    return sum(length * length for length in lengths) / sum(lengths)

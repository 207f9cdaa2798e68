"""What is asked of a budget: two of FLOPs, parameters, tokens and loss at most, and everything around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from train.compute.accelerators import ACCELERATORS
from train.compute.flops import ModelShape
from train.compute.laws import LAWS
from train.compute.numbers import BudgetError
from train.compute.repetition import Supply

Positive = Annotated[float, Field(gt=0, le=1e40, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, le=1e40, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=1, le=10**12)]

MAX_PARAMETERS: Final = 1e20  # beyond it the law's terms are lost in a float64 beside its irreducible loss
GIVEN: Final = ("flops", "parameters", "tokens", "loss")
SHAPE: Final = ("layers", "width", "heads", "vocab_size")
SHAPE_OPTIONS: Final = ("key_value_heads", "head_width", "feed_forward_width", "vocab_size")


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Question:
    """See train.compute.budget for what each field means."""

    flops: Positive | None = None
    parameters: Positive | None = None
    tokens: Positive | None = None
    loss: Positive | None = None
    inference_tokens: NotNegative = 0.0
    unique_tokens: Positive | Mapping[str, NotNegative] | None = None
    weights: Mapping[str, NotNegative] | None = None
    law: Literal["besiroglu", "hoffmann", "hoffmann_tex", "muennighoff"] = "besiroglu"
    accelerator: str = "h100"
    accelerators: Whole = 8
    mfu: float = Field(default=0.4, ge=1e-6, le=1)
    layers: Whole | None = None
    width: Whole | None = None
    heads: Whole | None = None
    key_value_heads: Whole | None = None
    head_width: Whole | None = None
    feed_forward_width: Whole | None = None
    feed_forward_matrices: Literal[2, 3] = 3
    vocab_size: Whole | None = None
    tie_embeddings: bool = True
    sequence_tokens: Whole = 2048
    mean_square_length: Positive | None = None
    causal: bool = True
    contexts: tuple[Whole, ...] = ()
    bytes_per_token: Positive | None = None
    tokenizers: Mapping[str, tuple[Positive, Whole]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _answerable(self) -> Question:
        self._check_given()
        self._check_shape()
        if self.accelerator not in ACCELERATORS:
            raise BudgetError(f"accelerator: {self.accelerator!r} is not known; one of {', '.join(ACCELERATORS)}")
        if self.mean_square_length is not None and self.mean_square_length > self.sequence_tokens:
            raise BudgetError(
                f"mean_square_length: {self.mean_square_length:g} is above sequence_tokens {self.sequence_tokens}; "
                "it is sum(l^2) / sum(l) of pieces that fit a row"
            )
        if self.tokenizers and self.bytes_per_token is None:
            raise BudgetError(
                "tokenizers: compared at equal bytes, so give bytes_per_token of the one tokens are counted in"
            )
        if self.weights is not None and self.unique_tokens is None:
            raise BudgetError("weights: epochs follow from unique_tokens; give both")
        if self.loss is not None:
            LAWS[self.law].excess(self.loss)
        _ = self.supply
        return self

    def _check_given(self) -> None:
        given = [name for name in GIVEN if getattr(self, name) is not None]
        allowed = "one or two of flops, parameters, tokens and loss (not flops with loss: each follows from the other)"
        if len(given) > 2:
            raise BudgetError(f"{', '.join(given)}: {len(given)} given; give {allowed}")
        if given == ["flops", "loss"]:
            raise BudgetError(
                "flops, loss: both given; each follows from the other: give one, or add parameters or tokens to one"
            )
        if self.sized and self.parameters is not None:
            raise BudgetError("parameters: follow from the shape; leave them out, or leave out layers, width and heads")
        if self.sized and len(given) > 1:
            raise BudgetError(
                f"{', '.join(given)}: the shape fixes the parameters; give one of flops, tokens and loss beside it"
            )
        if not given and not self.sized and self.unique_tokens is None:
            raise BudgetError(f"nothing to plan from; give {allowed}, or unique_tokens, or a shape")

    def _check_shape(self) -> None:
        if not self.sized:
            stray = [name for name in (*SHAPE_OPTIONS, "mean_square_length") if getattr(self, name) is not None]
            stray += ["contexts"] * bool(self.contexts) + ["tie_embeddings"] * (not self.tie_embeddings)
            if stray:
                raise BudgetError(f"{stray[0]}: needs the shape; give layers, width, heads and vocab_size")
            return
        missing = [name for name in SHAPE if getattr(self, name) is None]
        if missing:
            raise BudgetError(f"{missing[0]}: is missing; a shape is layers, width, heads and vocab_size")
        assert self.shape is not None
        if self.shape.parameters > MAX_PARAMETERS:
            raise BudgetError(
                f"layers, width: a shape of {self.shape.parameters:.2e} parameters; at most {MAX_PARAMETERS:g}"
            )

    @property
    def sized(self) -> bool:
        return any(getattr(self, name) is not None for name in ("layers", "width", "heads"))

    @property
    def shape(self) -> ModelShape | None:
        if not (self.sized and self.layers and self.width and self.heads and self.vocab_size):
            return None
        return ModelShape(
            vocab_size=self.vocab_size,
            layers=self.layers,
            width=self.width,
            heads=self.heads,
            key_value_heads=self.key_value_heads,
            head_width=self.head_width,
            feed_forward_width=self.feed_forward_width,
            feed_forward_matrices=self.feed_forward_matrices,
            tie_embeddings=self.tie_embeddings,
        )

    @property
    def supply(self) -> Supply | None:
        return None if self.unique_tokens is None else Supply.of(self.unique_tokens, self.weights)

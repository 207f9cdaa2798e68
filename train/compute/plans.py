"""The plans of a budget: what was asked, what is best, and the same loss bought in other ways."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from train.compute.accelerators import ACCELERATORS, hours
from train.compute.flops import TokenFlops
from train.compute.laws import INFERENCE_FLOPS, LAWS, TRAIN_FLOPS
from train.compute.numbers import BudgetError, short
from train.compute.question import Question
from train.compute.surface import Surface

# Multiples of the optimal size at equal loss; to the left of .25 a law's extrapolation carries all the weight.
SIZES_AT_EQUAL_LOSS: Final = (2.0, 0.75, 0.5, 0.3, 0.25)


@dataclass(frozen=True, kw_only=True)
class ComputePlan:
    """One way to train. loss: nats a token of the law. flops_ratio: training FLOPs against the fewest for the same
    loss. lifetime_flops: training and the inference that was asked for. effective_tokens: repeats counted at what they
    are worth; epochs: over all unique tokens (both None where unique_tokens were not given). exact: FLOPs are the
    shape's, else 6 N a token."""

    name: str
    parameters: float
    tokens: float
    tokens_per_parameter: float
    loss: float
    train_flops: float
    inference_flops: float
    lifetime_flops: float
    flops_ratio: float | None
    hours: float
    epochs: float | None
    effective_tokens: float | None
    exact: bool


class Planner:
    """Makes the plans of one question on one surface."""

    def __init__(self, question: Question, token_flops: TokenFlops | None) -> None:
        self.question = question
        self.token_flops = token_flops
        self.surface = Surface(LAWS[question.law], question.supply)
        self.found: dict[float, tuple[float, float] | None] = {}

    def plans(self) -> tuple[ComputePlan, ...]:
        """The chosen plan first, then its alternatives at the same loss."""
        parameters, tokens, name = self.target()
        first = self.plan(name, parameters, tokens, exact=self.token_flops is not None)
        others: list[ComputePlan] = []
        best = self.cheapest(first.loss)
        if name != "compute-optimal" and best is not None:
            others.append(self.plan("compute-optimal", *best, loss=first.loss))
        if self.question.inference_tokens and best is not None:
            served = self.surface.optimum_of_loss(first.loss, self.question.inference_tokens)
            others.insert(0, self.plan("inference-aware", *served, loss=first.loss))
        if self.surface.supply is not None:
            others.extend(self.unlimited(first))
        others.extend(self.at_equal_loss(first.loss))
        return (first, *others)

    def target(self) -> tuple[float, float, str]:
        """(N, D, name) of what was asked."""
        asked, law = self.question, self.surface.law
        size = float(asked.shape.parameters) if asked.shape else asked.parameters
        if size is not None:
            return size, self.tokens_of(size), "as asked"
        if asked.tokens is not None and asked.flops is not None:
            return asked.flops / TRAIN_FLOPS / asked.tokens, asked.tokens, "as asked"
        if asked.tokens is not None and asked.loss is not None:
            found = self.surface.parameters_for(asked.tokens, asked.loss)
            if found is None:
                raise BudgetError(
                    f"tokens, loss: no size reaches {asked.loss:g} on {short(asked.tokens)} tokens; "
                    "give more tokens or a higher loss"
                )
            return found, asked.tokens, "as asked"
        if asked.loss is not None:
            return *self.surface.optimum_of_loss(asked.loss), "compute-optimal"
        if asked.flops is not None:
            return *self.surface.optimum_of_flops(asked.flops), "compute-optimal"
        tokens = asked.tokens if asked.tokens is not None else self.supply_once()
        return law.optimum_of_tokens(tokens), tokens, "as asked"

    def supply_once(self) -> float:
        """All unique tokens, as far as the weights reach without repeating any."""
        assert self.surface.supply is not None
        return self.surface.supply.once

    def tokens_of(self, size: float) -> float:
        asked = self.question
        if asked.tokens is not None:
            return asked.tokens
        if asked.flops is not None:
            return asked.flops / (self.token_flops.train if self.token_flops else TRAIN_FLOPS * size)
        if asked.loss is None:
            return self.surface.law.optimum_of_parameters(size)
        tokens = float(self.surface.tokens_for(size, asked.loss))
        if tokens == float("inf"):
            raise BudgetError(
                f"parameters, loss: {short(size)} parameters do not reach {asked.loss:g} on any number of tokens"
                f"{'' if self.surface.supply is None else ' from ' + self.surface.supply.told()}; "
                "give more parameters or a higher loss"
            )
        return tokens

    def unlimited(self, first: ComputePlan) -> list[ComputePlan]:
        """What the same training FLOPs would buy if every token were fresh, where that differs."""
        parameters, tokens = self.surface.law.optimum_of_flops(first.train_flops)
        assert self.surface.supply is not None
        if tokens <= self.surface.supply.once:
            return []
        asked = replace(self.question, unique_tokens=None, weights=None)
        return [Planner(asked, None).plan("if all were fresh", parameters, tokens)]

    def at_equal_loss(self, loss: float) -> list[ComputePlan]:
        """Smaller models for longer, and a larger one for less: those sizes that reach the loss at all."""
        best = self.cheapest(loss)
        if best is None:
            return []
        size, made = best[0], []
        for multiple in SIZES_AT_EQUAL_LOSS:
            tokens = float(self.surface.tokens_for(size * multiple, loss))
            if tokens < float("inf"):
                made.append(self.plan(f"size x {multiple:g}", size * multiple, tokens, loss=loss))
        return made

    def cheapest(self, loss: float) -> tuple[float, float] | None:
        """(N, D) of the fewest FLOPs to that loss, found once. None where a run that repeats its tokens without end has
        a loss that differs from the lowest by less than numbers do: nothing else reaches it."""
        if loss not in self.found:
            try:
                self.found[loss] = self.surface.optimum_of_loss(loss)
            except BudgetError:
                if self.question.loss is not None:
                    raise
                self.found[loss] = None
        return self.found[loss]

    def plan(
        self, name: str, parameters: float, tokens: float, *, exact: bool = False, loss: float | None = None
    ) -> ComputePlan:
        """loss: what the tokens were chosen for, where they were."""
        surface, asked = self.surface, self.question
        # Only the asked shape has FLOPs of its own; a size alone says nothing of layers and width.
        known = self.token_flops if exact else None
        train = tokens * (known.train if known else TRAIN_FLOPS * parameters)
        inference = asked.inference_tokens * (known.inference if known else INFERENCE_FLOPS * parameters)
        loss = surface.loss(parameters, tokens) if loss is None else loss
        best = self.cheapest(loss)
        supply = surface.supply
        return ComputePlan(
            name=name,
            parameters=parameters,
            tokens=tokens,
            tokens_per_parameter=tokens / parameters,
            loss=loss,
            train_flops=train,
            inference_flops=inference,
            lifetime_flops=train + inference,
            flops_ratio=None if best is None else parameters * tokens / (best[0] * best[1]),
            hours=hours(train, ACCELERATORS[asked.accelerator], asked.accelerators, asked.mfu),
            epochs=None if supply is None else tokens / supply.total,
            effective_tokens=None if supply is None else float(surface.effective_tokens(tokens)),
            exact=known is not None,
        )

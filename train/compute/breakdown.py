"""What a chosen plan means by domain, by device, and with another context length or tokenizer; and what to doubt."""

from __future__ import annotations

import dataclasses
from typing import Final

from train.compute.accelerators import ACCELERATORS, hours
from train.compute.flops import STATE_BYTES, ModelShape, TokenFlops
from train.compute.laws import TRAIN_FLOPS
from train.compute.numbers import short
from train.compute.plans import ComputePlan
from train.compute.question import Question
from train.compute.repetition import FREE_EPOCHS, SPENT_EPOCHS, effective_tokens

# Points of Hoffmann et al. lie between these (arXiv:2203.15556, section 3), and their refits stand on the same points.
FITTED_FLOPS: Final = (6e18, 3e21)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DomainTokens:
    """What the chosen plan takes from a domain. value: worth of one of its tokens, on average, in fresh tokens."""

    domain: str
    unique_tokens: float
    weight: float
    tokens: float
    epochs: float
    effective_tokens: float
    value: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeviceHours:
    """The chosen plan on another device, as many of them at the same MFU. state_bytes: weights, gradients and AdamW's
    moments on each when sharded; fits: they leave room on it (activations are not counted)."""

    accelerator: str
    hours: float
    bf16_flops: float
    memory_bytes: float
    state_bytes: float
    fits: bool
    source: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variant:
    """The chosen plan with another context length, or with another tokenizer on the same bytes of text."""

    name: str
    sequence_tokens: int
    bytes_per_token: float | None
    parameters: float
    tokens: float
    flops_per_token: float
    attention_share: float | None
    train_flops: float
    hours: float

    @classmethod
    def of(cls, question: Question, name: str, tokens: float, parameters: float, counted: TokenFlops | None) -> Variant:
        per_token = counted.train if counted else TRAIN_FLOPS * parameters
        return cls(
            name=name,
            sequence_tokens=question.sequence_tokens,
            bytes_per_token=question.bytes_per_token,
            parameters=parameters,
            tokens=tokens,
            flops_per_token=per_token,
            attention_share=counted.attention_share if counted else None,
            train_flops=per_token * tokens,
            hours=hours(per_token * tokens, ACCELERATORS[question.accelerator], question.accelerators, question.mfu),
        )


def domains_of(question: Question, chosen: ComputePlan) -> tuple[DomainTokens, ...]:
    supply = question.supply
    if supply is None:
        return ()
    made = []
    for domain, unique, weight, epochs in zip(
        supply.domains, supply.unique, supply.weights, supply.epochs(chosen.tokens), strict=True
    ):
        taken = chosen.tokens * weight
        worth = float(effective_tokens(taken, unique)) if weight > 0 else 0.0
        made.append(
            DomainTokens(
                domain=domain,
                unique_tokens=unique,
                weight=weight,
                tokens=taken,
                epochs=epochs,
                effective_tokens=worth,
                value=worth / taken if taken else 1.0,
            )
        )
    return tuple(made)


def devices_of(question: Question, chosen: ComputePlan) -> tuple[DeviceHours, ...]:
    state = chosen.parameters * STATE_BYTES / question.accelerators
    return tuple(
        DeviceHours(
            accelerator=device.name,
            hours=hours(chosen.train_flops, device, question.accelerators, question.mfu),
            bf16_flops=device.bf16_flops,
            memory_bytes=device.memory_bytes,
            state_bytes=state,
            fits=state <= device.memory_bytes,
            source=device.source,
        )
        for device in ACCELERATORS.values()
    )


def variants_of(question: Question, chosen: ComputePlan, shape: ModelShape | None) -> tuple[Variant, ...]:
    context = question.mean_square_length or float(question.sequence_tokens)
    made = []
    for length in question.contexts:
        assert shape is not None  # Question refuses contexts without a shape
        # Documents that are isolated do not grow with the row.
        seen = float(length) if question.mean_square_length is None else min(question.mean_square_length, float(length))
        counted = TokenFlops.of(shape, seen, question.causal)
        base = Variant.of(question, f"context {length}", chosen.tokens, float(shape.parameters), counted)
        made.append(dataclasses.replace(base, sequence_tokens=length))
    for name, (bytes_per_token, vocab_size) in sorted(question.tokenizers.items()):
        assert question.bytes_per_token is not None  # Question refuses tokenizers without it
        tokens = chosen.tokens * question.bytes_per_token / bytes_per_token
        other = None if shape is None else dataclasses.replace(shape, vocab_size=vocab_size)
        counted_or_none = None if other is None else TokenFlops.of(other, context, question.causal)
        size = chosen.parameters if other is None else float(other.parameters)
        base = Variant.of(question, f"tokenizer {name}", tokens, size, counted_or_none)
        made.append(dataclasses.replace(base, bytes_per_token=bytes_per_token))
    return tuple(made)


def notes_of(
    question: Question, chosen: ComputePlan, plans: tuple[ComputePlan, ...], domains: tuple[DomainTokens, ...]
) -> tuple[str, ...]:
    """What a reader should know before believing the numbers."""
    notes = []
    low, high = FITTED_FLOPS
    if not low <= chosen.train_flops <= high:
        notes.append(
            f"{chosen.train_flops:.2e} FLOPs: an extrapolation, as the law's points lie between {low:g} and {high:g}"
        )
    if question.law == "hoffmann":
        notes.append(
            "law hoffmann is printed with rounded exponents, which make 92.6 tokens a parameter of 59.1 at 5.76e23"
        )
    if chosen.tokens_per_parameter > 1000:
        notes.append(f"{chosen.tokens_per_parameter:.0f} tokens a parameter is further than the law's points reach")
    for domain in domains:
        if domain.epochs > SPENT_EPOCHS:
            told = f"past {SPENT_EPOCHS:g} a further one is worth nothing, and real losses rise"
            notes.append(f"{domain.domain}: {domain.epochs:.1f} epochs; {told}")
        elif domain.epochs > FREE_EPOCHS:
            notes.append(
                f"{domain.domain}: {domain.epochs:.1f} epochs; its tokens are worth {domain.value:.0%} of fresh ones"
            )
    if chosen.flops_ratio is None:
        notes.append(
            "its loss is the lowest that these unique tokens allow, so no other plan reaches it: further repeats, or "
            "parameters, buy nothing"
        )
    if question.shape is None:
        notes.append("FLOPs are 6 N a token; give layers, width, heads and vocab_size to count attention and the head")
    elif any(not plan.exact for plan in plans):
        notes.append("plans of other sizes count 6 N a token: only the given shape has exact FLOPs")
    state = chosen.parameters * STATE_BYTES / question.accelerators
    device = ACCELERATORS[question.accelerator]
    if state > device.memory_bytes:
        notes.append(
            f"weights, gradients and AdamW's moments need {short(state)} bytes on each {device.name} of "
            f"{short(device.memory_bytes)}: take more of them"
        )
    return tuple(notes)

"""`gristmill budget`: its options."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobs.commands import Json, call

Text = str | None
Whole = int | None
Texts = list[str] | None


def amount(flag: str, said: str) -> Any:
    """An option that takes a number as people write it."""
    return typer.Option(flag, metavar="AMOUNT", help=said)


def whole(flag: str, said: str) -> Any:
    return typer.Option(flag, min=1, help=said)


def pairs(flag: str, form: str, said: str) -> Any:
    return typer.Option(flag, metavar=form, help=f"{said}; may be repeated.")


def budget(  # noqa: PLR0917 - typer reads options from parameters
    out: Annotated[Text, typer.Argument(metavar="[OUT]", help="A run, for the tokens that there are.")] = None,
    flops: Annotated[Text, amount("--flops", "Training FLOPs, as 5.76e23.")] = None,
    parameters: Annotated[Text, amount("--parameters", "Parameters, as 1.3B.")] = None,
    tokens: Annotated[Text, amount("--tokens", "Tokens to train on, as 15T.")] = None,
    loss: Annotated[Text, amount("--loss", "The loss to reach, nats a token.")] = None,
    inference_tokens: Annotated[Text, amount("--inference-tokens", "Tokens served in the model's life.")] = None,
    unique: Annotated[Texts, pairs("--unique", "N|DOMAIN=N", "Unique tokens that there are")] = None,
    weights: Annotated[Texts, pairs("--weight", "DOMAIN=W", "Weight of a domain")] = None,
    law: Annotated[str, typer.Option("--law", help="besiroglu, hoffmann, hoffmann_tex or muennighoff.")] = "besiroglu",
    accelerator: Annotated[str, typer.Option("--accelerator", help="a100, h100, h200, b200, ...")] = "h100",
    accelerators: Annotated[int, typer.Option("--accelerators", min=1, help="How many.")] = 8,
    mfu: Annotated[float, typer.Option("--mfu", help="Share of the peak that is reached.")] = 0.4,
    layers: Annotated[Whole, whole("--layers", "The model's layers; with width and heads: exact FLOPs.")] = None,
    width: Annotated[Whole, whole("--width", "Its width.")] = None,
    heads: Annotated[Whole, whole("--heads", "Its attention heads.")] = None,
    key_value_heads: Annotated[Whole, whole("--key-value-heads", "Of grouped queries.")] = None,
    head_width: Annotated[Whole, whole("--head-width", "Default: width / heads.")] = None,
    feed_forward_width: Annotated[Whole, whole("--feed-forward-width", "Default: 8/3 of the width.")] = None,
    vocab_size: Annotated[Whole, whole("--vocab-size", "Entries of the vocabulary.")] = None,
    untied: Annotated[bool, typer.Option("--untied", help="Embedding and readout are two matrices.")] = False,
    sequence_tokens: Annotated[int, typer.Option("--sequence-tokens", min=1, help="The context length.")] = 2048,
    mean_square_length: Annotated[Text, amount("--mean-square-length", "sum(l^2) / sum(l) of packed rows.")] = None,
    contexts: Annotated[list[int] | None, pairs("--context", "N", "A context length to compare")] = None,
    bytes_per_token: Annotated[Text, amount("--bytes-per-token", "Of the tokenizer that tokens count.")] = None,
    tokenizers: Annotated[Texts, pairs("--tokenizer", "NAME=BYTES,VOCAB", "A tokenizer at equal bytes")] = None,
    plot: Annotated[Text, typer.Option("--plot", metavar="FILE.svg", help="Where to draw it.")] = None,
    json: Json = False,
) -> int:
    """Plan a training run: size, tokens, FLOPs, hours, epochs a domain."""
    told = dict(locals())
    told["tie_embeddings"] = not told.pop("untied")
    for name in ("unique", "weights", "tokenizers", "contexts"):
        told[name] = tuple(told[name] or ())
    return call("budget", **told)

"""`gristmill budget`: its options."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobs.commands import Json, call


def _amount(flag: str, said: str) -> Any:
    return Annotated[str | None, typer.Option(flag, metavar="AMOUNT", help=said)]


def _whole(flag: str, said: str) -> Any:
    return Annotated[int | None, typer.Option(flag, min=1, help=said)]


def _pairs(flag: str, form: str, said: str) -> Any:
    return Annotated[list[str] | None, typer.Option(flag, metavar=form, help=said)]


Flops = _amount("--flops", "Training FLOPs, as 5.76e23.")
Parameters = _amount("--parameters", "Parameters, as 1.3B.")
Tokens = _amount("--tokens", "Tokens to train on, as 15T.")
Loss = _amount("--loss", "The loss to reach, nats a token.")
Inference = _amount("--inference-tokens", "Tokens to be served in the model's life.")
Unique = _pairs("--unique", "N or DOMAIN=N", "Unique tokens there are; may be repeated.")
Weights = _pairs("--weight", "DOMAIN=W", "Weight of a domain; may be repeated.")
Tokenizers = _pairs("--tokenizer", "NAME=BYTES,VOCAB", "A tokenizer to compare at equal bytes; may be repeated.")
Contexts = Annotated[list[int] | None, typer.Option("--context", metavar="N", help="A context length to compare.")]
BytesPerToken = _amount("--bytes-per-token", "Of the tokenizer that tokens are counted in.")
MeanSquare = _amount("--mean-square-length", "sum(l^2) / sum(l) of packed documents.")


def budget(  # noqa: PLR0917 - typer reads options from parameters
    out: Annotated[str | None, typer.Argument(metavar="[OUT]", help="A run whose token shards there are.")] = None,
    flops: Flops = None,
    parameters: Parameters = None,
    tokens: Tokens = None,
    loss: Loss = None,
    inference_tokens: Inference = None,
    unique: Unique = None,
    weights: Weights = None,
    law: Annotated[str, typer.Option("--law", help="besiroglu, hoffmann, hoffmann_tex, muennighoff.")] = "besiroglu",
    accelerator: Annotated[str, typer.Option("--accelerator", help="a100, h100, h200, b200, ...")] = "h100",
    accelerators: Annotated[int, typer.Option("--accelerators", min=1, help="How many.")] = 8,
    mfu: Annotated[float, typer.Option("--mfu", help="Share of the peak that is reached.")] = 0.4,
    layers: _whole("--layers", "The model's layers: with width, heads, vocab: exact FLOPs.") = None,  # type: ignore[valid-type]
    width: _whole("--width", "Its width.") = None,  # type: ignore[valid-type]
    heads: _whole("--heads", "Its attention heads.") = None,  # type: ignore[valid-type]
    key_value_heads: _whole("--key-value-heads", "Of grouped queries.") = None,  # type: ignore[valid-type]
    head_width: _whole("--head-width", "Default: width / heads.") = None,  # type: ignore[valid-type]
    feed_forward_width: _whole("--feed-forward-width", "Default: 8/3 of the width.") = None,  # type: ignore[valid-type]
    vocab_size: _whole("--vocab-size", "Entries of the vocabulary.") = None,  # type: ignore[valid-type]
    untied: Annotated[bool, typer.Option("--untied", help="Embedding and readout are two matrices.")] = False,
    sequence_tokens: Annotated[int, typer.Option("--sequence-tokens", min=1, help="The context length.")] = 2048,
    mean_square_length: MeanSquare = None,
    contexts: Contexts = None,
    bytes_per_token: BytesPerToken = None,
    tokenizers: Tokenizers = None,
    plot: Annotated[str | None, typer.Option("--plot", metavar="FILE.svg", help="Where to draw it.")] = None,
    json: Json = False,
) -> int:
    """Plan a training run: size, tokens, FLOPs, hours, epochs a domain."""
    told = dict(locals())
    told["tie_embeddings"] = not told.pop("untied")
    for name in ("unique", "weights", "tokenizers", "contexts"):
        told[name] = tuple(told[name] or ())
    return call("budget", **told)

"""`gristmill budget`: what a training run costs, what it buys, and what else would buy the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobs.errors import UserError
from jobs.report.database import opened
from jobs.verbs import plots

AMOUNTS = ("flops", "parameters", "tokens", "loss", "inference_tokens", "bytes_per_token", "mean_square_length")


def run(
    *,
    out: str | None = None,
    unique: Sequence[str] = (),
    weights: Sequence[str] = (),
    tokenizers: Sequence[str] = (),
    plot: str | None = None,
    json: bool = False,
    **asked: Any,
) -> int:
    """Print the budget. Amounts are text as people write them (1.3B, 5.76e23); `out` gives the tokens that there are
    by domain, their bytes a token and the vocabulary."""
    from train.compute import budget

    plots.check(plot)
    told = {name: value for name, value in asked.items() if value is not None}
    told |= {name: _number(told[name], f"--{name.replace('_', '-')}") for name in AMOUNTS if name in told}
    told["accelerator"] = str(told["accelerator"]).lower()
    if out is not None:
        told = {**_available(out, sized="layers" in told), **told}
    if unique:
        told["unique_tokens"] = _unique(unique)
    if weights:
        told["weights"] = {name: _number(value, "--weight") for name, value in _pairs(weights, "--weight")}
    if tokenizers:
        told["tokenizers"] = dict(_tokenizer(name, value) for name, value in _pairs(tokenizers, "--tokenizer"))
    made = budget(**told)
    print(made.to_json() if json else made.to_table())
    if plot is not None:
        plots.draw(made.plot, plot)
    return 0


def _available(out: str, *, sized: bool) -> dict[str, Any]:
    """What a run's token shards offer: unique tokens by domain, bytes a token, and the vocabulary of a shape."""
    with opened(out) as found:
        step = next((step for step in found.steps if step["kind"] == "tokens"), None)
        account = found.manifests[step["step"]] if step else None
    if not account or not account.get("tokens"):
        raise UserError(f"{out}: holds no tokens; add a section tokens: to its recipe and run it")
    told: dict[str, Any] = {
        "unique_tokens": {name: float(counts["tokens"]) for name, counts in account["domains"].items()},
        "bytes_per_token": account["text_bytes"] / account["tokens"],
    }
    return {**told, "vocab_size": account["tokenizer"]["vocab_size"]} if sized else told


def _unique(told: Sequence[str]) -> Any:
    """A number of unique tokens, or one a domain."""
    if len(told) == 1 and "=" not in told[0]:
        return _number(told[0], "--unique")
    return {name: _number(value, "--unique") for name, value in _pairs(told, "--unique")}


def _tokenizer(name: str, value: str) -> tuple[str, tuple[float, int]]:
    size, comma, entries = value.partition(",")
    count = _number(entries, "--tokenizer") if comma else 0.5
    if not count.is_integer():
        raise UserError(f"--tokenizer {name}={value}: write NAME=BYTES_A_TOKEN,VOCABULARY, as llama3=4.4,128256")
    return name, (_number(size, "--tokenizer"), int(count))


def _number(text: str, option: str) -> float:
    from train.compute import parse_number
    from train.compute.numbers import BudgetError

    try:
        return parse_number(text)
    except BudgetError as error:
        raise UserError(f"{option} {error}") from None


def _pairs(told: Sequence[str], option: str) -> list[tuple[str, str]]:
    pairs = [text.partition("=") for text in told]
    wrong = [text for text, (name, equals, value) in zip(told, pairs, strict=True) if not (name and equals and value)]
    if wrong:
        raise UserError(f"{option} {wrong[0]}: is not NAME=NUMBER; write for example {option} web=0.7")
    names = [name for name, _, _ in pairs]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UserError(f"{option} {twice[0]}: stands twice; give it once")
    return [(name, value) for name, _, value in pairs]

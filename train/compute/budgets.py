"""budget(): one question in, one record out, as a table, JSON or a plot."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from train.compute.breakdown import DeviceHours, DomainTokens, Variant, devices_of, domains_of, notes_of, variants_of
from train.compute.flops import ModelShape, TokenFlops
from train.compute.laws import LAWS
from train.compute.numbers import BudgetError
from train.compute.plans import ComputePlan, Planner
from train.compute.published import DeepSeekRule, deepseek
from train.compute.question import Question

FORMAT: Final = "gristmill-budget/1"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Budget:
    """The answer. chosen: what was asked, or the best for it; plans: chosen first, then others at its loss.
    rule: a second opinion on tokens, and a peak learning rate and batch, from compute alone."""

    question: Question
    chosen: ComputePlan
    plans: tuple[ComputePlan, ...]
    shape: ModelShape | None
    token_flops: TokenFlops | None
    domains: tuple[DomainTokens, ...]
    devices: tuple[DeviceHours, ...]
    variants: tuple[Variant, ...]
    text_bytes: float | None
    rule: DeepSeekRule
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        told = dataclasses.asdict(self)
        law = LAWS[self.question.law]
        return {"format": FORMAT, "law": dataclasses.asdict(law), **told}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1, sort_keys=True, allow_nan=False)

    def to_table(self) -> str:
        """Plain text for a terminal."""
        from train.compute.table import table_of

        return table_of(self)

    def plot(self, path: str) -> None:
        """Write an SVG: loss over size at equal FLOPs, and FLOPs over size at equal loss. Needs matplotlib."""
        from train.compute.plot import draw

        draw(self, path)


def budget(
    *,
    flops: float | None = None,
    parameters: float | None = None,
    tokens: float | None = None,
    loss: float | None = None,
    inference_tokens: float = 0.0,
    unique_tokens: float | Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
    law: str = "besiroglu",
    accelerator: str = "h100",
    accelerators: int = 8,
    mfu: float = 0.4,
    layers: int | None = None,
    width: int | None = None,
    heads: int | None = None,
    key_value_heads: int | None = None,
    head_width: int | None = None,
    feed_forward_width: int | None = None,
    feed_forward_matrices: int = 3,
    vocab_size: int | None = None,
    tie_embeddings: bool = True,
    sequence_tokens: int = 2048,
    mean_square_length: float | None = None,
    causal: bool = True,
    contexts: tuple[int, ...] = (),
    bytes_per_token: float | None = None,
    tokenizers: Mapping[str, tuple[float, int]] | None = None,
) -> Budget:
    """Plan a training run: the best (parameters, tokens), what it costs, and what else buys the same loss.

    flops, parameters, tokens, loss: one gives the optimum for it (for loss, the cheapest); two describe a run (flops
        with loss excepted, as one follows from the other); none with unique_tokens plans for seeing those once.
    inference_tokens: tokens served in the model's life: adds the plan of fewest lifetime FLOPs at the same loss.
    unique_tokens: what there is, in all or by domain; repeats are discounted. weights: of domains, in tokens; None
        takes each domain in proportion.
    law: besiroglu (default), hoffmann (as printed), hoffmann_tex, muennighoff: sources in train.compute.laws.
    accelerator, accelerators, mfu: device by name, how many, and the share of the dense bf16 peak that the job reaches.
    layers, width, heads, vocab_size and what follows: a model's shape (as ModelSettings), for exact FLOPs a token; it
        fixes the parameters. sequence_tokens: context length. mean_square_length: sum(l^2) / sum(l) over the documents
        in packed rows where attention stays inside documents. causal: False counts full attention. contexts: further
        context lengths to compare.
    bytes_per_token: of the tokenizer that tokens are counted in. tokenizers: {name: (bytes a token, vocab_size)} to
        compare on the same bytes of text.

    Raises BudgetError, in one line, for what cannot be answered.
    """
    told = {name: value for name, value in locals().items() if value is not None}
    try:
        question = Question(**told)
    except ValidationError as error:
        raise BudgetError(one_line(error)) from None
    return answer(question)


def one_line(error: ValidationError) -> str:
    """The first complaint, with the field in front."""
    first = error.errors(include_url=False)[0]
    if isinstance(first.get("ctx", {}).get("error"), BudgetError):
        return str(first["ctx"]["error"])
    where = ".".join(str(part) for part in first["loc"][:1]) or "budget"
    return f"{where}: {first['msg']}; got {first['input']!r}"


def answer(question: Question) -> Budget:
    shape = question.shape
    context = question.mean_square_length or float(question.sequence_tokens)
    token_flops = None if shape is None else TokenFlops.of(shape, context, question.causal)
    plans = Planner(question, token_flops).plans()
    chosen = next((plan for plan in plans if plan.name == "inference-aware"), plans[0]) if _free(question) else plans[0]
    domains = domains_of(question, chosen)
    return Budget(
        question=question,
        chosen=chosen,
        plans=(chosen, *(plan for plan in plans if plan is not chosen)),
        shape=shape,
        token_flops=token_flops,
        domains=domains,
        devices=devices_of(question, chosen),
        variants=variants_of(question, chosen, shape),
        text_bytes=None if question.bytes_per_token is None else question.bytes_per_token * chosen.tokens,
        rule=deepseek(chosen.train_flops),
        notes=notes_of(question, chosen, plans, domains),
    )


def _free(question: Question) -> bool:
    """Is the size free, so that inference may choose it?"""
    fixed = (question.parameters, question.tokens, question.shape)
    return all(value is None for value in fixed) and (question.flops is not None or question.loss is not None)

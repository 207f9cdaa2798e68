"""Each export format: which samples it takes, its columns, and what must hold of each row before it is written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

import pyarrow as pa

from synth.exports.columns import MESSAGES, RefusedRowError, check_text, messages
from synth.exports.proof import Proof
from synth.items import SampleKind
from synth.requests import digest
from synth.rows import Row

Values = dict[str, Any]
TRAVELLING: Final = (
    ("id", pa.string()),
    ("task", pa.string()),
    ("item", pa.string()),
    ("domain", pa.string()),
    ("skill", pa.string()),
    ("language", pa.string()),
    ("source", pa.string()),
    ("licence", pa.string()),
    ("teachers", pa.list_(pa.string())),
    ("attributions", pa.list_(pa.string())),
    ("requests", pa.list_(pa.string())),
    ("verdict", pa.string()),
    ("tokens", pa.int64()),
)
"""Columns of each row of each format: where it is from, under which terms, the requests that it was made by."""


class Format(Protocol):
    """One format. takes: the kinds of samples. columns: its own, beside TRAVELLING. one_an_item: the first sample of an
    item stands for all. needs_gold: items without a gold and a verifier are not for it."""

    @property
    def takes(self) -> frozenset[SampleKind]: ...

    @property
    def one_an_item(self) -> bool: ...

    @property
    def needs_gold(self) -> bool: ...

    @property
    def columns(self) -> list[tuple[str, pa.DataType]]: ...

    def convert(self, rows: Sequence[Row]) -> list[Values | RefusedRowError]:
        """Each row's own columns, or why it is refused."""


def _each(rows: Sequence[Row], convert: Any) -> list[Values | RefusedRowError]:
    made: list[Values | RefusedRowError] = []
    for row in rows:
        try:
            made.append(convert(row))
        except RefusedRowError as refused:
            made.append(refused)
    return made


@dataclass(frozen=True, kw_only=True)
class Sft:
    """Conversations, the last turn trained on; with a tokenizer's folder also input_ids and loss_mask, proved."""

    takes: ClassVar[frozenset[SampleKind]] = frozenset({SampleKind.CONVERSATION})
    one_an_item: ClassVar[bool] = False
    needs_gold: ClassVar[bool] = False
    proof: Proof | None = None

    @property
    def columns(self) -> list[tuple[str, pa.DataType]]:
        ids = [("input_ids", pa.list_(pa.int32())), ("loss_mask", pa.list_(pa.bool_()))]
        return [("messages", MESSAGES), *(ids if self.proof else [])]

    def convert(self, rows: Sequence[Row]) -> list[Values | RefusedRowError]:
        made = _each(rows, lambda row: {"messages": conversation(row)})
        return made if self.proof is None else _proved(self.proof, made)


def _proved(proof: Proof, made: list[Values | RefusedRowError]) -> list[Values | RefusedRowError]:
    right = [one for one in made if not isinstance(one, RefusedRowError)]
    encoded = iter(proof.encode([one["messages"] for one in right]))
    told: list[Values | RefusedRowError] = []
    for one in made:
        found = one if isinstance(one, RefusedRowError) else next(encoded)
        if isinstance(found, RefusedRowError) or isinstance(one, RefusedRowError):
            told.append(found if isinstance(found, RefusedRowError) else RefusedRowError("export.unproved"))
        else:
            told.append({**one, **found})
    return told


def conversation(row: Row) -> list[Values]:
    """The messages, of which the last assistant's alone is trained on. Raises RefusedRowError."""
    told = messages(row.sample.messages)
    if not told or told[-1]["role"] != "assistant":
        raise RefusedRowError("export.no_answer")
    if not told[-1]["content"].strip() and not told[-1].get("tool_calls"):
        raise RefusedRowError("export.empty_answer")
    return told


class OneByOne:
    """A format that decides each row by itself."""

    def convert(self, rows: Sequence[Row]) -> list[Values | RefusedRowError]:
        return _each(rows, self._one)

    def _one(self, row: Row) -> Values:
        """The row's own columns. Raises RefusedRowError."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class PromptCompletion(OneByOne):
    """TRL's conversational prompt and completion: the last answer is the completion."""

    takes: ClassVar[frozenset[SampleKind]] = frozenset({SampleKind.CONVERSATION})
    one_an_item: ClassVar[bool] = False
    needs_gold: ClassVar[bool] = False
    columns: ClassVar[list[tuple[str, pa.DataType]]] = [("prompt", MESSAGES), ("completion", MESSAGES)]

    def _one(self, row: Row) -> Values:
        told = conversation(row)
        if len(told) < 2:
            raise RefusedRowError("export.no_prompt")
        return {"prompt": told[:-1], "completion": told[-1:]}


@dataclass(frozen=True, kw_only=True)
class Dpo:
    """Preference pairs with a margin. With a tokenizer both sides are rendered, and must begin alike."""

    takes: ClassVar[frozenset[SampleKind]] = frozenset({SampleKind.PAIR})
    one_an_item: ClassVar[bool] = False
    needs_gold: ClassVar[bool] = False
    columns: ClassVar[list[tuple[str, pa.DataType]]] = [
        ("prompt", MESSAGES),
        ("chosen", MESSAGES),
        ("rejected", MESSAGES),
        ("margin", pa.float64()),
    ]
    proof: Proof | None = None

    def convert(self, rows: Sequence[Row]) -> list[Values | RefusedRowError]:
        made = _each(rows, self._one)
        if self.proof is None:
            return made
        right = [one for one in made if not isinstance(one, RefusedRowError)]
        sides = [self.proof.encode([one["prompt"] + one[side] for one in right]) for side in ("chosen", "rejected")]
        verdicts = iter([_alike(*pair) for pair in zip(*sides, strict=True)])
        return [one if isinstance(one, RefusedRowError) else next(verdicts) or one for one in made]

    def _one(self, row: Row) -> Values:
        sample = row.sample
        if sample.chosen is None or sample.rejected is None or not sample.messages:
            raise RefusedRowError("export.no_pair")
        prompt, chosen, rejected = messages(sample.messages), messages((sample.chosen,)), messages((sample.rejected,))
        if {chosen[0]["role"], rejected[0]["role"]} != {"assistant"}:
            raise RefusedRowError("export.no_answer")
        if _said(chosen[0]) == _said(rejected[0]):
            raise RefusedRowError("export.equal_sides")
        margin = sample.figures.get("margin")
        return {"prompt": prompt, "chosen": chosen, "rejected": rejected, "margin": margin}


def _said(told: Values) -> str:
    parts = (told.get("reasoning_content", ""), told["content"], json.dumps(told.get("tool_calls", []), sort_keys=True))
    return "\0".join(" ".join(part.split()) for part in parts)


def _alike(chosen: Any, rejected: Any) -> RefusedRowError | None:
    for side in (chosen, rejected):
        if isinstance(side, RefusedRowError):
            return side
    first = [side["loss_mask"].index(True) for side in (chosen, rejected)]
    if first[0] != first[1] or chosen["input_ids"][: first[0]] != rejected["input_ids"][: first[0]]:
        return RefusedRowError("export.prompts_differ")
    return None


@dataclass(frozen=True, kw_only=True)
class Rlvr(OneByOne):
    """Prompts with what verifies their answers. dataset is the verifier's name, as open-instruct reads it; pass_rate,
    of the rollouts that were judged. One row an item."""

    takes: ClassVar[frozenset[SampleKind]] = frozenset({SampleKind.CONVERSATION})
    one_an_item: ClassVar[bool] = True
    needs_gold: ClassVar[bool] = True
    columns: ClassVar[list[tuple[str, pa.DataType]]] = [
        ("prompt", MESSAGES),
        ("ground_truth", pa.large_string()),
        ("verifier", pa.string()),
        ("options", pa.large_string()),
        ("dataset", pa.string()),
        ("pass_rate", pa.float64()),
    ]

    def _one(self, row: Row) -> Values:
        item = row.item
        prompt = messages((*item.messages, *([{"role": "user", "content": item.prompt}] if item.prompt else [])))
        if not prompt:
            raise RefusedRowError("export.no_prompt")
        truth = item.gold if isinstance(item.gold, str) else json.dumps(item.gold, sort_keys=True, ensure_ascii=False)
        check_text(truth)
        return {
            "prompt": prompt,
            "ground_truth": truth,
            "verifier": item.verifier,
            "options": json.dumps(dict(item.options), sort_keys=True, ensure_ascii=False),
            "dataset": item.verifier,
            "pass_rate": row.pass_rate,
        }


@dataclass(frozen=True, kw_only=True)
class Documents(OneByOne):
    """Text for pretraining, as a source of documents: a recipe reads it with format: parquet."""

    takes: ClassVar[frozenset[SampleKind]] = frozenset({SampleKind.DOCUMENT})
    one_an_item: ClassVar[bool] = False
    needs_gold: ClassVar[bool] = False
    columns: ClassVar[list[tuple[str, pa.DataType]]] = [("text", pa.large_string()), ("source_id", pa.string())]

    def _one(self, row: Row) -> Values:
        return {"text": _text(row), "source_id": digest([row.task, row.item.id, row.sample.number])}


@dataclass(frozen=True, kw_only=True)
class Steps(OneByOne):
    """Solutions with a label a step, as TRL's trainer of process reward models takes them: prompt, completions, labels;
    values, the share of completions from a step that ended right (Math-Shepherd's soft label)."""

    takes: ClassVar[frozenset[SampleKind]] = frozenset({SampleKind.STEPS})
    one_an_item: ClassVar[bool] = False
    needs_gold: ClassVar[bool] = False
    columns: ClassVar[list[tuple[str, pa.DataType]]] = [
        ("prompt", MESSAGES),
        ("completions", pa.list_(pa.large_string())),
        ("labels", pa.list_(pa.bool_())),
        ("values", pa.list_(pa.float64())),
    ]

    def _one(self, row: Row) -> Values:
        try:
            steps = json.loads(row.sample.facts["steps"])
            texts = [str(step["text"]) for step in steps]
            told = {
                "labels": [bool(step["hard"]) for step in steps],
                "values": [float(step["soft"]) for step in steps],
            }
        except (KeyError, TypeError, ValueError):
            raise RefusedRowError("export.no_steps") from None
        if not steps:
            raise RefusedRowError("export.no_steps")
        check_text(*texts)
        turns = [turn for turn in row.sample.messages if turn.get("role") != "assistant"]
        return {"prompt": messages(tuple(turns)), "completions": texts, **told}


@dataclass(frozen=True, kw_only=True)
class Labels(OneByOne):
    """Texts with a score, for a classifier that filters learn."""

    takes: ClassVar[frozenset[SampleKind]] = frozenset({SampleKind.LABEL})
    one_an_item: ClassVar[bool] = False
    needs_gold: ClassVar[bool] = False
    columns: ClassVar[list[tuple[str, pa.DataType]]] = [("text", pa.large_string()), ("score", pa.float64())]

    def _one(self, row: Row) -> Values:
        score = row.sample.figures.get("score")
        if score is None:
            raise RefusedRowError("export.no_score")
        return {"text": _text(row), "score": score}


def _text(row: Row) -> str:
    if not row.sample.text.strip():
        raise RefusedRowError("export.empty_text")
    check_text(row.sample.text)
    return row.sample.text

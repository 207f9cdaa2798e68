"""The card of an exported dataset: what it is, from whom, under which terms, what was measured; no sample's text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

ABOUT: Final = {
    "sft": "Conversations for supervised fine-tuning; the last assistant turn carries the loss.",
    "prompt_completion": "Prompts and completions as conversations, in TRL's form.",
    "dpo": "Preference pairs: a prompt, a chosen and a rejected answer, a margin.",
    "rlvr": "Prompts with a ground truth and the name of the verifier that decides answers.",
    "documents": "Text for pretraining, made by rewriting or writing from documents.",
    "steps": "Solutions in steps, each with a label of whether it leads to the right answer.",
    "labels": "Texts with a score, for training a classifier.",
}
MARKDOWN: Final = str.maketrans({one: f"\\{one}" for one in "\\`*_{}[]()<>#|!~"})


def card(to: str, told: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """Markdown with the front matter that the Hugging Face hub reads. Names from outside are escaped."""
    lines = ["---", *_front(told), "---", "", f"# {_escaped(facts.get('name', 'Synthetic data'))}", "", ABOUT[to], ""]
    lines += _table("Rows", _rows(told))
    lines += _table(
        "Not written, and why", [*_counted(told, "left_out"), *_counted(told, "blocked"), *_counted(told, "refused")]
    )
    lines += _table("Licences", _counted(told, "licences"))
    lines += _table("Teachers", _counted(told, "teachers"))
    if told["attributions"]:
        lines += ["To be named: " + ", ".join(map(_escaped, told["attributions"])), ""]
    lines += ["## Proof", "", _proof(to, told), ""]
    for title, value in facts.items():
        if isinstance(value, Mapping) and value:
            lines += _table(title.replace("_", " ").capitalize(), [(str(key), one) for key, one in value.items()])
    lines += [f"Order-free digest of the rows: `{told['digest']}`", ""]
    return "\n".join(lines)


def _front(told: Mapping[str, Any]) -> Iterator[str]:
    licences = [one for one in told["licences"] if one != "unknown"]
    yield "license: " + json.dumps(licences[0].lower() if len(told["licences"]) == 1 and licences else "other")
    yield "tags: [synthetic]"
    rows = told["rows"]["written"]
    sizes = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
    yield f"size_categories: [{json.dumps(next((name for most, name in sizes if rows < most), '1M<n<10M'))}]"


def _rows(told: Mapping[str, Any]) -> list[tuple[str, Any]]:
    rows = told["rows"]
    return [
        ("candidates", rows["in"]), ("written", rows["written"]), ("left out", rows["left_out"]),
        ("blocked by terms", rows["blocked"]), ("failed their proof", rows["refused"]),
        ("tokens", told["tokens"]), ("tokens with a loss", told["trained_tokens"]),
    ]  # fmt: skip


def _proof(to: str, told: Mapping[str, Any]) -> str:
    if not told["proved"]:
        return "The rows were not rendered: no tokenizer was named."
    if to in ("sft", "dpo"):
        return (
            "Each row was rendered with the target's chat template and encoded: exactly the BOS that the template "
            "writes, a mask over the last answer and its end token alone, the prompt a prefix of the whole, ids that "
            "decode to the text, reasoning intact."
        )
    return "This format has no ids to prove."


def _counted(told: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
    return sorted(told[key].items(), key=lambda pair: (-pair[1], pair[0]))


def _table(title: str, rows: list[tuple[str, Any]]) -> list[str]:
    if not rows:
        return []
    lines = [f"| {_escaped(name)} | {_shown(value)} |" for name, value in rows]
    return [f"## {title}", "", "| | |", "|---|---:|", *lines, ""]


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else _escaped(value)


def _escaped(value: Any) -> str:
    """Text as text: no markup, no line end, nothing longer than a line."""
    return " ".join(str(value).split())[:200].translate(MARKDOWN)

"""A document's way in words for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobs.report.database import Row
from jobs.report.numbers import plain, whole
from jobs.report.visible import line
from jobs.verbs.look import reason
from jobs.verbs.paper import cell, table

_INDENT = 4


def told(way: Row) -> Iterator[str]:
    """Lines: who it is and where it stands; a block a step; duplicates at the end."""
    yield way["id"]
    facts = [
        ("source", way["source"]),
        ("domain", way["domain"]),
        ("url", way["url"]),
        ("date", way["date"]),
        ("language", way["language"]),
    ]
    yield (
        "  ".join(f"{key} {line(str(value), 200)}" for key, value in facts if value)
        or "nothing is known of where it came from"
    )
    if way["outcome"] == "kept":
        sizes = [(way["characters"], "characters"), (way["token_count"], "tokens")]
        yield "kept" + "".join(f", {whole(count)} {what}" for count, what in sizes if count is not None)
    else:
        yield f"{way['outcome']} by {way['step']}: {way['rule']}"
    if sum(way["rows"].values()) > 1:
        yield "identical rows of this id: " + ", ".join(
            f"{whole(count)} {what}" for what, count in way["rows"].items() if count
        )
    yield ""
    for step in way["steps"]:
        yield from _step(step)
    if way["survivor"]:
        yield from _survivor(way["survivor"])
    for group in way["stands_for"]:
        yield from _stands_for(group)


def _step(step: Row) -> Iterator[str]:
    outcome = step["outcome"]
    why = f"  {_reason(step)}" if outcome in ("dropped", "quarantined") else ""
    yield f"{step['step']:14} {outcome}{why}"
    checks, signals = step["checks"], step["signals"]
    if checks:
        yield from table([_check(check) for check in checks], indent=_INDENT)
    read = {check["signal"] for check in checks}
    others = [f"{key} {cell(value, 80)}" for key, value in signals.items() if key not in read and value is not None]
    for at in range(0, len(others), 6):
        yield (
            " " * _INDENT
            + ("measured too: " if at == 0 and checks else "measured: " if at == 0 else "  ")
            + ", ".join(others[at : at + 6])
        )


def _reason(step: Row) -> str:
    if step["outcome"] == "quarantined":
        return f"{step['rule']}: {line(step['evidence'] or '', 200)}"
    return reason(step)


def _check(check: Row) -> tuple[Any, ...]:
    mark = {True: "pass", False: "FAIL", None: "?"}[check["passed"]]
    if check["threshold"] is None:
        return mark, check["rule"], "", ""
    wants = f"wants {check['wants']} {plain(check['threshold'])}"
    return mark, check["rule"], f"{check['signal'] or 'value'} {plain(check['value'])}", wants


def _survivor(survivor: Row) -> Iterator[str]:
    yield ""
    likeness = f"similarity {plain(survivor['similarity'])}; that one is {survivor['now']}"
    yield f"{survivor['method']}: it is a duplicate of {survivor['kept_id']}, {likeness}"
    if survivor["same_until"]:
        yield f"the texts are the same up to character {whole(survivor['same_until'])}; differing words stand in [+ +]"
    for label, key in (("survivor", "kept_pieces"), ("this one", "pieces")):
        yield f"  {label}:"
        text = "".join(f"[+{piece}+]" if differs and piece.strip() else piece for piece, differs in survivor[key])
        yield from ("    " + part for part in (text or "(its text was not kept)").split("\n"))


def _stands_for(group: Row) -> Iterator[str]:
    yield ""
    others = f"{whole(group['removed'])} {'other' if group['removed'] == 1 else 'others'}"
    yield f"{group['method']}: it stands for {others}, the least similar at {plain(group['least'])}:"
    for example in group["examples"]:
        yield f"    {example['id']}  {plain(example['similarity'])}"

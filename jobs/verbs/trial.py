"""`gristmill try`: a sample through every step in a temporary folder; kept and dropped side by side, with reasons."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import Any

from jobs import recipe as recipes
from jobs.report import examples
from jobs.report.database import Output, Row, opened
from jobs.report.visible import line
from jobs.verbs.look import reason
from jobs.verbs.paper import dump, show, table, terminal_width, width

PAIRS = 12
LINES = 4
NARROW = 100
"""Below so many columns of a terminal, kept and dropped stand one after the other."""


def run(recipe: str, n: int = 200, sets: Sequence[str] = (), json: bool = False) -> int:
    """Run the first n records of each source through the steps of a recipe; nothing is left behind.

    Tokens and training are left out: a tokenizer of a few texts says nothing. Raises UserError as `run` does. Exit
    code 1 where shards failed.
    """
    from jobs.running import run as run_recipe

    loaded = recipes.load(recipe, list(sets))
    with tempfile.TemporaryDirectory(prefix="gristmill-try-") as folder:
        document = {key: value for key, value in loaded.document.items() if key not in ("tokens", "train")} | {
            "output": folder,
            "keep_dropped": 1.0,
            "max_quarantined": 1.0,
        }
        result = run_recipe(recipes.build(document, label=recipe), limit=n, quiet=True)
        for failure in result.failures:
            print(failure, file=sys.stderr)
        if not result.steps:
            return 1
        with opened(folder) as found:
            if json:
                dump(answer(found))
            else:
                show("\n".join(told(found)))
    return 1 if result.failures else 0


def answer(found: Output) -> Row:
    """Steps with their counts, and every document of the sample with its outcome."""
    return {
        "records": found.manifests[found.steps[0]["step"]]["rows"]["in"],
        "steps": [
            {
                "step": step["step"],
                "rows": found.manifests[step["step"]]["rows"],
                "rules": found.manifests[step["step"]]["rules"],
            }
            for step in found.steps
        ],
        "kept": found.rows("SELECT id, source, url, text FROM documents_stored ORDER BY id"),
        "dropped": found.rows(
            "SELECT id, source, url, step, rule, rules, value, threshold, evidence, text FROM dropped ORDER BY id, step"
        ),
        "quarantined": found.rows(
            "SELECT id, source, location, step, error, message FROM quarantine ORDER BY location, id"
        ),
    }


def told(found: Output) -> Iterator[str]:
    """A table of the steps, then documents side by side, then what was quarantined."""
    rows = [_counts(found, step["step"]) for step in found.steps]
    yield from table(rows, ("step", "in", "kept", "dropped", "quarantined", "most by"))
    yield ""
    kept = [_kept(row) for row in examples.kept(found, PAIRS)]
    gone = [_dropped(row) for row in _spread(found)][: max(PAIRS, len(kept))]
    yield from side_by_side(kept, gone)
    for row in found.rows("SELECT location, step, error, message FROM quarantine ORDER BY location LIMIT ?", PAIRS):
        place, message = line(row["location"] or "", 100), line(row["message"] or "", 120)
        yield f"quarantined by {row['step']}: {place}: {row['error']}: {message}"


def _counts(found: Output, step: str) -> tuple[Any, ...]:
    account = found.manifests[step]
    rules = sorted(account["rules"].items(), key=lambda pair: (-pair[1], pair[0]))
    return (
        step,
        *(account["rows"][key] for key in ("in", "kept", "dropped", "quarantined")),
        f"{rules[0][0]} ({rules[0][1]})" if rules else "",
    )


def _spread(found: Output) -> list[Row]:
    """Dropped documents, of each rule one before any has two."""
    groups = [group["samples"] for group in examples.dropped(found)]
    return [row for row in chain.from_iterable(zip_longest(*groups)) if row is not None]


def _kept(row: Row) -> list[str]:
    return [f"{row['id'][:12]}  {row['source']}  {row['url']}", *_text(row["text"])]


def _dropped(row: Row) -> list[str]:
    return [f"{row['id'][:12]}  {row['source']}  {row['url']}", f"{row['step']}: {reason(row)}", *_text(row["text"])]


def _text(text: str | None) -> list[str]:
    return [line(text or "(no text)", 600)]


def side_by_side(left: list[list[str]], right: list[list[str]]) -> Iterator[str]:
    """Two columns of blocks, kept and dropped; one column where the terminal is narrow."""
    wide = terminal_width()
    if wide < NARROW:
        for title, blocks in (("kept", left), ("dropped", right)):
            yield title
            yield from (
                part
                for block in blocks
                for part in ["", *(piece for text in block for piece in wrapped(text, wide, LINES))]
            )
            yield ""
        return
    half = min((wide - 3) // 2, 90)
    yield _row("KEPT", "DROPPED", half)
    yield "-" * half + "-+-" + "-" * half
    none: list[str] = []
    for one, two in zip_longest(left, right, fillvalue=none):
        pieces = [[piece for text in block for piece in wrapped(text, half, LINES)] for block in (one, two)]
        yield from (_row(a, b, half) for a, b in zip_longest(*pieces, fillvalue=""))
        yield _row("", "", half)


def _row(left: str, right: str, half: int) -> str:
    return f"{left}{' ' * (half - width(left))} | {right}".rstrip()


def wrapped(text: str, columns: int, most: int) -> list[str]:
    """At most `most` lines of at most `columns` terminal columns each."""
    lines: list[str] = []
    while text and len(lines) < most:
        fits = _fitting(text, columns)
        space = text.rfind(" ", 0, fits + 1) if fits < len(text) else -1
        end = space if space > fits // 2 else fits
        lines.append(text[:end].rstrip())
        text = text[end:].lstrip()
    if text and lines:
        lines[-1] = lines[-1][: _fitting(lines[-1], columns - 1)] + "\u2026"
    return lines or [""]


def _fitting(text: str, columns: int) -> int:
    """How many characters of a text fit in so many columns; at least one."""
    used = 0
    for number, character in enumerate(text):
        used += width(character)
        if used > columns:
            return max(number, 1)
    return len(text)

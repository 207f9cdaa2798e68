"""`gristmill train tokenizers OUT FILE...`: tokenizers side by side on a run's documents."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from typing import Any

from jobs.errors import UserError
from jobs.report.database import opened
from jobs.verbs import paper, plots

COLUMNS = (
    ("bytes/token", "bytes_per_token"),
    ("characters/token", "characters_per_token"),
    ("fertility", "fertility"),
    ("vocabulary used", "vocabulary_used"),
    ("byte fallback", "fallback_share"),
    ("tokens", "tokens"),
)
ALL = "all"


def run(
    out: str, files: Sequence[str], *, plot: str | None = None, sample_bytes: int = 1 << 20, json: bool = False
) -> int:
    """Print the comparison of the files with the run's own tokenizer, where it made one."""
    from train.tokenise.comparing import as_json, compare, named
    from train.tokenise.drawing import draw_comparison

    plots.check(plot)
    with opened(out):  # says what is wrong with an output that is none
        pass
    table = compare(named(files, out), out, sample_bytes=sample_bytes)
    if not table.num_rows:
        raise UserError(f"{out}: keeps no documents to compare on; give a run that kept some (keep: last, or all)")
    print(json_format.dumps(as_json(table), indent=1) if json else "\n".join(lines(table.to_pylist())))
    if plot is not None:
        plots.draw(lambda path: draw_comparison(table, path), plot)
    return 0


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """A line a tokenizer, domain and language, columns in line."""
    head = ("tokenizer", "domain", "language", *(title for title, _ in COLUMNS))
    told = [
        (row["tokenizer"], row["domain"] or ALL, row["language"] or ALL, *(row[key] for _, key in COLUMNS))
        for row in rows
    ]
    return paper.table(told, head)

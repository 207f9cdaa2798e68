"""A comparison of tokenizers as a picture. The same table gives the same bytes."""

from __future__ import annotations

import io
import warnings
from typing import Any

import pyarrow as pa

from shards.store import write_bytes

# Okabe and Ito's colours, told apart by everyone; the marks differ, too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKS = "osD^vPX"
MOST_NAMES = 40
SETTINGS = {"svg.hashsalt": "gristmill", "svg.fonttype": "none", "font.size": 9, "text.parse_math": False}


def draw_comparison(table: pa.Table, path: str) -> None:
    """Write an SVG of what train.tokenise.comparing.compare returned, at a local name or any fsspec URL.

    Bytes a token by domain, tokens a word by language, and the share of the vocabulary that is used. Of more than 40
    domains or languages those with most bytes are drawn.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = table.to_pylist()
    names = list(dict.fromkeys(row["tokenizer"] for row in rows))
    domains = [row for row in rows if row["domain"] is not None and row["language"] is None]
    languages = [row for row in rows if row["domain"] is None and row["language"] is not None]
    whole = [row for row in rows if row["domain"] is None and row["language"] is None]
    most = min(max(len({row["domain"] for row in domains}), len({row["language"] for row in languages})), MOST_NAMES)
    with mpl.rc_context(SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # the reader's font draws it, not ours
        figure = Figure(figsize=(11, 2.2 + 0.22 * max(most, len(names))), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        _dots(left, domains, "domain", "bytes_per_token")
        left.set_xlabel("bytes a token (more is shorter)")
        _dots(middle, languages, "language", "fertility")
        middle.set_xlabel("tokens a word (fewer is shorter)")
        _bars(right, whole)
        if names:
            figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=min(len(names), 4))
        held = io.BytesIO()
        figure.savefig(held, format="svg", metadata={"Date": None, "Creator": None, "Title": "Tokenizers compared"})
    write_bytes(path, held.getvalue())


def _dots(axes: Any, rows: list[dict[str, Any]], by: str, value: str) -> None:
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[row[by]] = row["bytes"]
    shown = sorted(sorted(sizes, key=lambda one: (-sizes[one], one))[:MOST_NAMES])
    for number, name in enumerate(dict.fromkeys(row["tokenizer"] for row in rows)):
        found = {row[by]: row[value] for row in rows if row["tokenizer"] == name}
        values = [found.get(one) for one in shown]
        told = [(at, value) for at, value in enumerate(values) if value is not None]
        axes.plot(
            [value for _, value in told],
            [at for at, _ in told],
            MARKS[number % len(MARKS)],
            color=COLOURS[number % len(COLOURS)],
            label=printable(name),
            markersize=5,
            alpha=0.8,
        )
    left_out = f" (the largest {MOST_NAMES} of {len(sizes)})" if len(sizes) > MOST_NAMES else ""
    axes.set_yticks(range(len(shown)), [printable(one) for one in shown])
    axes.invert_yaxis()
    axes.set_title(f"by {by}{left_out}")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _bars(axes: Any, rows: list[dict[str, Any]]) -> None:
    shares = [100 * (row["vocabulary_used"] or 0) for row in rows]
    axes.barh(range(len(rows)), shares, color=[COLOURS[at % len(COLOURS)] for at in range(len(rows))], height=0.6)
    axes.set_yticks(range(len(rows)), [f"{printable(row['tokenizer'])} ({row['vocabulary']:,})" for row in rows])
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of the vocabulary that occurs")
    axes.set_title("of all texts")
    axes.spines[["top", "right"]].set_visible(False)


def printable(name: str) -> str:
    """A name that an SVG can hold, and that fits: control characters told by their escapes, 40 characters at most."""
    told = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in name)
    return told if len(told) <= 40 else f"{told[:39]}\u2026"

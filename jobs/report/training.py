"""Numbers of the report that a training run left: its losses, its mixture, bits per byte by domain and language."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from jobs.report.database import Output, Row
from shards.store import filesystem, join

METRICS = "metrics.jsonl"
MOST_STEPS = 5000
"""Steps that report.json holds the losses of; longer runs are told by means of as many stretches."""


def training(found: Output) -> Row | None:
    """The model, its curves and its measures; None where nothing was trained."""
    step = next((step for step in found.steps if step["kind"] == "train"), None)
    if step is None:
        return None
    account = found.manifests[step["step"]]
    told, settings = account.get("trained") or {}, account.get("settings", {})
    rows = list(_metrics(join(found.out, step["folder"])))
    steps = [row for row in rows if row.get("kind") == "step"]
    evaluations = [row for row in rows if row.get("kind") == "evaluation"]
    return {
        "folder": step["folder"],
        "parameters": told.get("parameters"),
        "steps": told.get("steps"),
        "tokens": told.get("tokens"),
        "loss": told.get("loss"),
        "bits_per_byte": told.get("bits_per_byte"),
        "rollbacks": len(told.get("rollbacks") or ()),
        "seconds": account.get("seconds"),
        "model": {key: settings.get(key) for key in ("layers", "width", "heads", "sequence_tokens", "optimizer")},
        "losses": _thinned([(row["tokens"], row["loss"]) for row in steps]),
        "rates": _thinned([(row["tokens"], row["learning_rate"]) for row in steps]),
        "evaluations": _by_domain(evaluations),
        "mixture": _mixture(found, settings, steps, told),
        "languages": [{"language": name, **row} for name, row in sorted((told.get("by_language") or {}).items())],
    }


def _metrics(folder: str) -> Iterator[dict[str, Any]]:
    """The rows of a run's metrics; what a kill has cut is left out."""
    files, path = filesystem(join(folder, METRICS))
    if not files.exists(path):
        return
    with files.open(path, "rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield json.loads(line)


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    size = -(-len(points) // MOST_STEPS)
    stretches = [points[start : start + size] for start in range(0, len(points), size or 1)]
    return [(stretch[-1][0], sum(y for _, y in stretch) / len(stretch)) for stretch in stretches]


def _by_domain(evaluations: list[Row]) -> list[Row]:
    """Bits per byte of held-out text over the steps, a series a domain, and one of all."""
    names = sorted({name for row in evaluations for name in row.get("by_domain", {})})
    series = [{"name": "all", "points": [(row["step"], row["bits_per_byte"]) for row in evaluations]}]
    for name in names:
        told = [(row["step"], row["by_domain"].get(name, {}).get("bits_per_byte")) for row in evaluations]
        series.append({"name": name, "points": [(at, value) for at, value in told if value is not None]})
    return series if evaluations else []


def _mixture(found: Output, settings: Row, steps: list[Row], told: Row) -> list[Row]:
    """A row a domain: the weight that was asked for, what it got, how often its tokens were seen, its measure."""
    tokens = next((found.manifests[step["step"]] for step in found.steps if step["kind"] == "tokens"), {})
    available = {name: counts["tokens"] for name, counts in tokens.get("domains", {}).items()}
    trained = dict.fromkeys(available, 0)
    for row in steps:
        for name, count in (row.get("targets_by_domain") or {}).items():
            trained[name] = trained.get(name, 0) + count
    weights = settings.get("weights") or available
    asked, got = sum(weights.values()) or 1, sum(trained.values()) or 1
    measures = told.get("by_domain") or {}
    return [
        {
            "domain": name,
            "available": available.get(name, 0),
            "weight": weights.get(name, 0) / asked,
            "share": trained[name] / got,
            "tokens": trained[name],
            "epochs": trained[name] / available[name] if available.get(name) else None,
            **{key: measures.get(name, {}).get(key) for key in ("bits_per_byte", "nats_per_token")},
        }
        for name in sorted(trained)
    ]

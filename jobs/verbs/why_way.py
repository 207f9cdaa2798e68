"""A document's way as plain values: each step's outcome, signals and rules; its survivor, or what it stands for."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from jobs.errors import UserError
from jobs.report import rebuilt
from jobs.report.database import Output, Row
from jobs.report.examples import pair, texts_of
from jobs.report.thresholds import Threshold, of_step

MOST = 10


def way(found: Output, document: str) -> Row:
    """Everything that the output knows of a document.

    Rows of one id are identical, so they go one way until `exact` keeps one of them: `rows` counts what became of all.
    """
    ends = found.rows(
        "SELECT 'dropped' AS outcome, step, rule, any_value(rules) AS rules, any_value(value) AS value, "
        "any_value(threshold) AS threshold, "
        "any_value(evidence) AS evidence, count(*) AS rows FROM dropped WHERE id = ? GROUP BY step, rule "
        "UNION ALL SELECT 'quarantined', step, error, NULL, NULL, NULL, any_value(message), count(*) FROM "
        "quarantine WHERE id = ? GROUP BY step, error",
        document,
        document,
    )
    kept = found.rows("SELECT * FROM documents WHERE id = ?", document)
    order = {step["step"]: number for number, step in enumerate(found.steps)}
    ends.sort(key=lambda end: order.get(end["step"], 0))
    last = None if kept else ends[-1] if ends else None
    facts = _facts(found, document, kept)
    reached = len(found.steps) if last is None else order.get(last["step"], 0)
    return {
        "id": document,
        "outcome": "kept" if kept else last["outcome"] if last else "kept",
        "step": last["step"] if last else None,
        "rule": last["rule"] if last else None,
        **{
            key: facts.get(key)
            for key in ("source", "domain", "source_id", "url", "date", "language", "copies", "token_count")
        },
        "characters": len(facts["text"]) if facts.get("text") is not None else None,
        "rows": {"kept": len(kept), **{f"{end['outcome']} by {end['step']}": end["rows"] for end in ends}},
        "steps": [_step(found, step, document, ends, reached) for step in found.steps],
        "survivor": _survivor(found, document, ends),
        "stands_for": _stands_for(found, document),
    }


def _facts(found: Output, document: str, kept: list[Row]) -> Row:
    """The columns of the document where it stands now."""
    gone = kept or found.rows("SELECT * FROM dropped WHERE id = ? LIMIT 1", document)
    return (
        gone or found.rows("SELECT source, location AS url FROM quarantine WHERE id = ? LIMIT 1", document) or [{}]
    )[0]


def _step(found: Output, step: Row, document: str, ends: list[Row], reached: int) -> Row:
    """What one step made of the document, which came as far as the step number `reached`."""
    number = found.steps.index(step)
    end = next((end for end in ends if end["step"] == step["step"]), None)
    here = number == reached or (end is not None and number >= reached)
    outcome = "not reached" if number > reached else end["outcome"] if end and here else "passed"
    measured = _signals(found, step, document)
    if outcome == "passed" and measured is None and "domains" in found.manifests[step["step"]].get("settings", {}):
        outcome = "passed untouched"
    told: Row = {"step": step["step"], "kind": step["kind"], "outcome": outcome}
    if end is not None:
        told |= {key: end[key] for key in ("rule", "rules", "value", "threshold", "evidence")}
    return {**told, "signals": measured or {}, "checks": _checks(found, step, measured) if measured else []}


def _signals(found: Output, step: Row, document: str) -> Row | None:
    view = found.signal_view(step["step"])
    rows = found.rows(f"SELECT * EXCLUDE (id) FROM {view} WHERE id = ? LIMIT 1", document) if view else []
    return rows[0] if rows else None


def _checks(found: Output, step: Row, measured: Row) -> list[Row]:
    """Each rule of a step on the document's signals: value, threshold, and whether it passed."""
    limits = {limit.rule: limit for limit in of_step(found, step)}
    made = _rebuilt(found, step, measured)
    if made is None:
        values = [(limit.rule, measured.get(limit.signal)) for limit in limits.values()]
        return [
            _told(rule, limits[rule], value, None if value is None else limits[rule].passes(value))
            for rule, value in values
        ]
    row = pa.Table.from_pylist([{field.name: measured[field.name] for field in made.signals}], schema=made.signals)
    return [
        _told(
            check.rule,
            limits.get(check.rule),
            None if check.value is None else float(check.value[0]),
            not bool(check.failed[0]),
        )
        for check in made.checks(rebuilt.as_measured(made, row))
    ]


def _rebuilt(found: Output, step: Row, measured: Row) -> Any:
    try:
        made = rebuilt.rebuild(step["kind"], found.manifests[step["step"]].get("settings", {}))
    except (ValueError, ImportError, UserError, OSError, KeyError):
        return None
    return made if rebuilt.judges_signals(made) and set(made.signals.names) <= set(measured) else None


def _told(rule: str, limit: Threshold | None, value: float | None, passed: bool | None) -> Row:
    known = {"signal": limit.signal, "wants": limit.sign, "threshold": limit.value} if limit else {}
    return {"rule": rule, "signal": None, "wants": None, "threshold": None, **known, "value": value, "passed": passed}


def _survivor(found: Output, document: str, ends: list[Row]) -> Row | None:
    """The document that stands for this one, with their similarity, both texts, and where it is now."""
    kinds = {step["step"]: step["kind"] for step in found.steps}
    end = next((end for end in reversed(ends) if kinds.get(end["step"]) in ("exact", "minhash")), None)
    if end is None or end["evidence"] is None or end["evidence"] == document:
        return None
    kept_id = end["evidence"]
    both = pair(texts_of(found, [kept_id, document]), kept_id, document, end["value"])
    return {"method": end["step"], **both, "now": standing(found, kept_id)}


def standing(found: Output, document: str) -> str:
    """Where a document stands at the end: kept, or what took it."""
    if found.rows("SELECT 1 AS one FROM documents_stored WHERE id = ? LIMIT 1", document):
        return "kept"
    rows = found.rows("SELECT step, rule FROM dropped WHERE id = ? ORDER BY rule LIMIT 1", document)
    return f"dropped by {rows[0]['step']}: {rows[0]['rule']}" if rows else "quarantined"


def _stands_for(found: Output, document: str) -> list[Row]:
    """By whole-corpus step: how many documents this one stands for, and the least similar of them."""
    rows = found.rows(
        "SELECT method, count(*) AS removed, min(similarity) AS least, "
        "min_by({'id': id, 'similarity': similarity}, (coalesce(similarity, 1.0), id), ?) AS examples "
        "FROM duplicates WHERE kept_id = ? GROUP BY method ORDER BY method",
        MOST,
        document,
    )
    return rows

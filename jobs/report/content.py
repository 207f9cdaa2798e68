"""Numbers of the report that are asked of the documents: languages, domains, sites, dates, drops, redactions, losses.

Each is one aggregate in DuckDB; nothing here holds a corpus.
"""

from __future__ import annotations

from jobs.report.database import Output, Row, name
from jobs.report.visible import cut, line

TOP = 30
_HOST = r"lower(regexp_extract(url, '^[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?([^/?#:]+)', 1))"


def drops(found: Output) -> list[Row]:
    """A row a rule, in the order of the steps: rows that it was the first to fail, and all rows that fail it."""
    failing = {
        (row["step"], row["rule"]): row["n"]
        for row in found.rows(
            "SELECT step, rule, count(*) AS n FROM (SELECT step, unnest(rules) AS rule FROM dropped) GROUP BY ALL"
        )
    }
    told = []
    for step in found.steps:
        account = found.manifests[step["step"]]
        rules = account.get("rules", {})
        others = {rule for name, rule in failing if name == step["step"]} - set(rules)
        for rule in sorted([*rules, *others], key=lambda rule: (-rules.get(rule, 0), rule)):
            rows = rules.get(rule, 0)
            told.append(
                {
                    "step": step["step"],
                    "rule": rule,
                    "rows": rows,
                    "failing": failing.get((step["step"], rule), rows),
                    "share_of_step": rows / account["rows"]["in"] if account["rows"]["in"] else None,
                }
            )
    return told


def languages(found: Output) -> list[Row]:
    """Rows that were identified as a language, and rows kept at the end; the first TOP by kept, then by rows."""
    kept: dict[str, int] = {}
    if "language" in found.columns("documents_stored"):
        kept = _counts(found, "SELECT language AS key, count(*) AS n FROM documents_stored GROUP BY 1")
    seen: dict[str, int] = {}
    for step in found.steps:
        if (
            step["kind"] == "language"
            and (view := found.signal_view(step["step"]))
            and "language" in found.columns(f"signals_{step['step']}")
        ):
            seen = _counts(found, f"SELECT language AS key, count(*) AS n FROM {view} GROUP BY 1")
            break
    order = sorted({*kept, *seen}, key=lambda key: (-max(seen.get(key, 0), kept.get(key, 0)), key))
    return [
        {"language": cut(key, 40), "rows": max(seen.get(key, 0), kept.get(key, 0)), "kept": kept.get(key, 0)}
        for key in order
    ]


def domains(found: Output) -> list[Row]:
    """The mixing domains: rows in, then what of them is there at the end, with the share that a mixture starts from."""
    first = found.manifests[found.steps[0]["step"]].get("domains", {})
    rows = found.rows(
        "SELECT coalesce(domain, '') AS domain, count(*) AS rows, coalesce(sum(strlen(text)), 0)::BIGINT AS bytes, "
        "sum(token_count)::BIGINT AS tokens FROM documents GROUP BY 1"
    )
    ends = {row["domain"]: row for row in rows}
    measure = "tokens" if any(row["tokens"] for row in rows) else "bytes"
    total = sum(row[measure] or 0 for row in rows)
    told = []
    for key in sorted({*first, *ends}, key=lambda key: (-(ends[key][measure] or 0) if key in ends else 0, key)):
        end = ends.get(key, {"rows": 0, "bytes": 0, "tokens": None})
        told.append(
            {
                "domain": cut(key, 80),
                "rows_in": first.get(key, {}).get("in"),
                "rows": end["rows"],
                "bytes": end["bytes"],
                "tokens": end["tokens"],
                "share": (end[measure] or 0) / total if total else None,
            }
        )
    return told


def sites(found: Output) -> list[Row]:
    """The hosts with most documents: kept and dropped rows, and the bytes of text that are kept."""
    rows = found.rows(
        f"""SELECT host, sum(kept)::BIGINT AS kept, sum(gone)::BIGINT AS dropped, sum(bytes)::BIGINT AS bytes FROM (
            SELECT {_HOST} AS host, 1 AS kept, 0 AS gone, strlen(text) AS bytes FROM documents_stored WHERE url IS NOT
            NULL
            UNION ALL SELECT {_HOST}, 0, 1, 0 FROM dropped WHERE url IS NOT NULL)
        WHERE host <> '' GROUP BY host ORDER BY kept DESC, dropped DESC, host LIMIT {TOP}"""
    )
    return [{**row, "host": cut(row["host"], 80)} for row in rows]


def site_total(found: Output) -> Row:
    """How many hosts there are among the kept documents, and how many documents have no address."""
    return found.row(
        f"SELECT approx_count_distinct(CASE WHEN {_HOST} <> '' THEN {_HOST} END) AS hosts, "
        "count(*) FILTER (WHERE url IS NULL) AS without_url FROM documents_stored"
    )


def dates(found: Output) -> Row:
    """Kept documents by year, or by month where they span three years or less."""
    span = found.row(
        "SELECT year(min(date)) AS first, year(max(date)) AS last, count(*) FILTER (WHERE date IS NULL) AS unknown "
        "FROM documents_stored"
    )
    if span["first"] is None:
        return {"unit": "year", "unknown": span["unknown"], "rows": []}
    unit = "month" if span["last"] - span["first"] < 3 else "year"
    form = "%Y-%m" if unit == "month" else "%Y"
    rows = found.rows(
        f"SELECT strftime(date_trunc('{unit}', date), '{form}') AS date, count(*) AS rows "
        "FROM documents_stored WHERE date IS NOT NULL GROUP BY 1 ORDER BY 1"
    )
    return {"unit": unit, "unknown": span["unknown"], "rows": rows}


def redactions(found: Output) -> list[Row]:
    """What `redact` steps replaced, by kind: how often, and in how many documents."""
    told = []
    for step in found.steps:
        view = found.signal_view(step["step"]) if step["kind"] == "redact" else None
        numeric = found.manifests[step["step"]].get("histograms", {}) if view else {}
        for kind in sorted(numeric):
            counted = found.row(
                f"SELECT sum({name(kind)})::BIGINT AS n, count(*) FILTER (WHERE {name(kind)} > 0) AS rows FROM {view}"
            )
            told.append({"step": step["step"], "kind": kind, "count": counted["n"] or 0, "rows": counted["rows"]})
    return told


def quarantine(found: Output) -> list[Row]:
    """What could not be judged, by step and error class, with a few places; never a text."""
    rows = found.rows(
        "SELECT step, error, count(*) AS rows, sum(bytes)::BIGINT AS bytes, "
        "min_by(location, md5(coalesce(location, id, '')), 5) AS places, any_value(message ORDER BY message) AS "
        "message "
        f"FROM quarantine GROUP BY step, error ORDER BY rows DESC, step, error LIMIT {TOP}"
    )
    return [
        {
            **row,
            "places": sorted(line(place, 160) for place in row["places"] or ()),
            "message": line(row["message"] or "", 200),
        }
        for row in rows
    ]


def contamination(found: Output) -> list[Row]:
    """By benchmark: documents and items found, the mean score, and the strongest pieces of evidence."""
    if not any(step["kind"] == "decontaminate" for step in found.steps):
        return []
    rows = found.rows(
        """SELECT split_part(evidence, '/', 1) AS benchmark, count(*) AS rows,
            count(DISTINCT regexp_extract(evidence, '^[^ ]*')) AS items, avg(score) AS score,
            max_by({'id': id, 'evidence': evidence, 'score': score}, (coalesce(score, 0), id), 5) AS examples
        FROM contamination GROUP BY 1 ORDER BY rows DESC, 1"""
    )
    return [{**row, "benchmark": cut(row["benchmark"], 80), "examples": _told(row["examples"])} for row in rows]


def _told(examples: list[Row]) -> list[Row]:
    return [{**example, "evidence": line(example["evidence"] or "", 300)} for example in examples]


def _counts(found: Output, sql: str) -> dict[str, int]:
    return {row["key"] or "": row["n"] for row in found.rows(sql)}

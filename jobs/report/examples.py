"""Samples of documents: kept, dropped by rule, and duplicates beside their survivors. Chosen by hash(seed, id), so that
the same run shows the same documents, whatever its shards or their order.
"""

from __future__ import annotations

from jobs.report.compare import Comparison, compare
from jobs.report.database import Output, Row
from jobs.report.visible import cut, line

KEPT = 10
DROPPED = 3
RULES = 60
SPARE = 8
"""Rows of one id are identical and lie together in the order of a sample; so many times more are drawn, then each
once."""
CLUSTERS = 5
MEMBERS = 2
READ_CHARACTERS = 20_000
"""As far as two texts are read when they are compared."""
_SIZES = ((2, 2), (3, 3), (4, 4), (5, 9), (10, 99), (100, 999), (1000, None))


def kept(found: Output, n: int = KEPT) -> list[Row]:
    """n random documents of the output."""
    chosen = _distinct(
        found.row(
            "SELECT min_by(id, md5(concat(?::VARCHAR, id)), ?) AS ids FROM documents_stored", _seed(found), n * SPARE
        )["ids"],
        n,
    )
    language = ", any_value(language) AS language" if "language" in found.columns("documents_stored") else ""
    copies = ", any_value(copies) AS copies" if "copies" in found.columns("documents_stored") else ""
    rows = found.rows(
        "SELECT id, any_value(source) AS source, any_value(domain) AS domain, any_value(url) AS url, "
        "any_value(date)::DATE::VARCHAR AS date, "
        f"any_value(left(text, 601)) AS text, any_value(length(text)) AS characters {language} {copies} "
        "FROM documents_stored WHERE id IN (SELECT unnest(?)) GROUP BY id",
        chosen,
    )
    return [_shown(row) for row in _in_order(rows, chosen)]


def dropped(found: Output, n: int = DROPPED) -> list[Row]:
    """n random rows of each rule, at most RULES rules, those with most rows first."""
    groups = found.rows(
        "SELECT step, rule, count(*) AS rows, count(text) AS texts, min_by(id, md5(concat(?::VARCHAR, id)), ?) AS ids "
        f"FROM dropped GROUP BY step, rule ORDER BY rows DESC, step, rule LIMIT {RULES}",
        _seed(found), n * SPARE,
    )  # fmt: skip
    groups = [{**group, "ids": _distinct(group["ids"], n)} for group in groups]
    wanted = sorted({one for group in groups for one in group["ids"]})
    rows = found.rows(
        "SELECT id, step, rule, any_value(source) AS source, any_value(url) AS url, any_value(value) AS value, "
        "any_value(threshold) AS threshold, "
        "any_value(evidence) AS evidence, any_value(rules) AS rules, any_value(left(text, 601)) AS text, "
        "any_value(length(text)) AS characters "
        "FROM dropped WHERE id IN (SELECT unnest(?)) GROUP BY id, step, rule",
        wanted,
    )
    by_key = {(row["step"], row["rule"], row["id"]): _shown(row) for row in rows}
    order = {step["step"]: number for number, step in enumerate(found.steps)}
    groups.sort(key=lambda group: (order.get(group["step"], 0), -group["rows"], group["rule"]))
    return [
        {
            **{key: group[key] for key in ("step", "rule", "rows", "texts")},
            "samples": [by_key[group["step"], group["rule"], one] for one in group["ids"]],
        }
        for group in groups
    ]


def duplicates(found: Output) -> list[Row]:
    """By whole-corpus step: rows removed, sizes of clusters, similarities, and the largest clusters with examples."""
    told = []
    for step in found.steps:
        removed = found.row(
            "SELECT count(*) AS n, count(DISTINCT kept_id) AS clusters FROM duplicates WHERE method = ?", step["step"]
        )
        if step["kind"] not in ("exact", "minhash"):
            continue
        told.append(
            {
                "step": step["step"], "kind": step["kind"], "removed": removed["n"], "clusters": removed["clusters"],
                "sizes": _sizes(found, step["step"]), "similarities": _similarities(found, step["step"]),
                "largest": _clusters(found, step["step"]),
            }
        )  # fmt: skip
    return told


def _sizes(found: Output, step: str) -> list[Row]:
    counted = {
        row["size"]: row["clusters"]
        for row in found.rows(
            "SELECT size, count(*) AS clusters FROM (SELECT count(*) + 1 AS size FROM duplicates WHERE method = ? "
            "GROUP BY kept_id) GROUP BY size",
            step,
        )
    }
    told = []
    for low, high in _SIZES:
        clusters = sum(n for size, n in counted.items() if size >= low and (high is None or size <= high))
        if clusters:
            label = f"{low:,}" if low == high else f"{low:,} and more" if high is None else f"{low:,}-{high:,}"
            told.append({"size": label, "clusters": clusters})
    return told


def _similarities(found: Output, step: str) -> list[Row]:
    """Removals by similarity, in steps of 0.02, the empty ones between them too."""
    rows = found.rows(
        "SELECT least(floor(round(similarity * 50, 9)), 50)::INTEGER AS step, count(*) AS rows FROM duplicates "
        "WHERE method = ? AND similarity IS NOT NULL GROUP BY 1", step,
    )  # fmt: skip
    counted = {row["step"]: row["rows"] for row in rows}
    return (
        [{"similarity": at / 50, "rows": counted.get(at, 0)} for at in range(min(counted), max(counted) + 1)]
        if counted
        else []
    )


def _clusters(found: Output, step: str) -> list[Row]:
    rows = found.rows(
        "SELECT kept_id, count(*) AS removed, min_by({'id': id, 'similarity': similarity}, md5(concat(?::VARCHAR, "
        "id)), ?) AS members "
        "FROM duplicates WHERE method = ? GROUP BY kept_id ORDER BY removed DESC, kept_id LIMIT ?",
        _seed(found), MEMBERS, step, CLUSTERS,
    )  # fmt: skip
    texts = texts_of(
        found, [row["kept_id"] for row in rows] + [one["id"] for row in rows for one in row["members"]], step
    )
    return [
        {
            "kept_id": row["kept_id"], "removed": row["removed"],
            "pairs": [pair(texts, row["kept_id"], one["id"], one["similarity"]) for one in row["members"]],
        }
        for row in rows
    ]  # fmt: skip


def texts_of(found: Output, ids: list[str], step: str | None = None) -> dict[str, Row]:
    """{id: url, text, characters} of documents, kept or dropped; a row that `step` dropped is told under its removed
    self.

    Rows of one id are identical in text, so that any of them will do.
    """
    rows = found.rows(
        "SELECT id, any_value(url) AS url, any_value(text) AS text, any_value(characters) AS characters FROM ("
        "SELECT id, url, left(text, ?) AS text, length(text) AS characters FROM documents_stored WHERE id IN "
        "(SELECT unnest(?)) "
        "UNION ALL SELECT id, url, left(text, ?), length(text) FROM dropped WHERE id IN (SELECT unnest(?))) GROUP "
        "BY id",
        READ_CHARACTERS, ids, READ_CHARACTERS, ids,
    )  # fmt: skip
    return {row["id"]: row for row in rows}


def pair(texts: dict[str, Row], kept_id: str, removed_id: str, similarity: float | None) -> Row:
    """A removed document beside its survivor: both texts from shortly before they first differ."""
    survivor, removed = texts.get(kept_id, {}), texts.get(removed_id, {})
    both = compare(survivor.get("text"), removed.get("text")) if survivor and removed else Comparison()
    return {
        "id": removed_id, "kept_id": kept_id, "similarity": similarity,
        "url": line(removed.get("url") or "", 200), "kept_url": line(survivor.get("url") or "", 200),
        "characters": removed.get("characters"), "kept_characters": survivor.get("characters"),
        "same_until": both.same_until, "kept_pieces": both.left, "pieces": both.right,
    }  # fmt: skip


def _shown(row: Row) -> Row:
    shown = {**row, "text": None if row["text"] is None else cut(row["text"]), "url": line(row["url"] or "", 200)}
    if "evidence" in row:
        shown["evidence"] = line(row["evidence"] or "", 300)
    return shown


def _in_order(rows: list[Row], ids: list[str]) -> list[Row]:
    by_id = {row["id"]: row for row in rows}
    return [by_id[one] for one in ids]


def _distinct(ids: list[str] | None, n: int) -> list[str]:
    return list(dict.fromkeys(ids or ()))[:n]


def _seed(found: Output) -> str:
    return str(found.run.get("seed", 0))

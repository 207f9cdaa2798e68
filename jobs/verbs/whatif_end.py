"""How many documents there would be at the end: exact where every step after is per document, else a range.

The range is proved by locality. A whole-corpus step compares two documents only where they share a key (the normalised
text for `exact`, a band of the signature for `minhash`), so what becomes of a document depends on those that it is
linked to by chains of shared keys, and on nothing else. Take all documents linked to one that comes or goes: `touched`.
Outside, everything stays as it was. Inside a linked group at least one document survives the comparisons (what is
removed has a kept one that stands for it), and of equal texts at most one does; what per-document steps would make of
each
document is known, since they are run on it. So a group adds at least one if all of its documents pass those steps, else
none, and at most as many as it has different texts that pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.report.database import Output
from jobs.verbs.whatif_changes import Place
from jobs.verbs.whatif_graph import Graph
from jobs.verbs.whatif_later import Arrivals, Later, dropped_rows

REWRITES = frozenset({"extract", "redact", "datatrove", "python"})
"""Kinds of steps that may change a text, so that the stored one is not what an earlier step read."""


@dataclass(frozen=True, kw_only=True)
class End:
    """Rows at the end: before, and the lowest and highest that a run would give; `why` says where a range comes
    from."""

    before: int
    low: int
    high: int
    why: str
    touched: int = 0

    @property
    def exact(self) -> bool:
        return self.low == self.high


@dataclass(frozen=True, kw_only=True)
class Question:
    """What `end` works on: every step that ran, those that change, and the whole-corpus steps that this reaches."""

    found: Output
    told: Sequence[Place]
    changed: Sequence[Place]
    corpus: Sequence[Place]
    later: Later
    before: int

    @property
    def first(self) -> int:
        return self.corpus[0].number

    @property
    def last(self) -> int:
        return self.corpus[-1].number

    @property
    def names(self) -> list[str]:
        """The steps from the first whole-corpus one on."""
        return [step["step"] for step in self.found.steps[self.first :]]

    @property
    def verify_falls(self) -> bool:
        return any(place.is_corpus and place.new.verify < place.old.verify for place in self.changed)

    def count(self, sql: str) -> int:
        return int(self.found.row(f"SELECT coalesce(({sql}), 0) AS n")["n"])


def end(found: Output, told: Sequence[Place], changed: Sequence[Place], later: Later) -> End:
    """The rows at the end, after `judge` has filled `moved` for each changed per-document step."""
    start = changed[0].number
    corpus = [place for place in told if place.is_corpus and (place.changes or place.number > start)]
    before = found.row("SELECT count(*) AS n FROM documents_stored")["n"]
    asked = Question(found=found, told=told, changed=changed, corpus=corpus, later=later, before=before)
    graph = Graph(found, corpus) if corpus else None
    for place in changed:
        if not place.is_corpus:
            query, parameters = dropped_rows(place)
            early = graph is not None and place.number < asked.first
            arrivals = Arrivals(number=asked.first, read=graph.read) if graph is not None and early else None
            later.send(query, parameters, place.number, arrivals)
    return _alone(asked) if graph is None else _range(asked, graph)


def _alone(asked: Question) -> End:
    """No whole-corpus step comes after: each document's fate is its own."""
    kept = asked.count("SELECT count(*) FROM documents_stored WHERE id NOT IN (SELECT id FROM moved WHERE NOT kept)")
    fates = _fates(asked)
    low, unknown = kept + fates.get("kept", 0), fates.get("unknown", 0)
    why = f"{unknown} rows cannot be sent through the later steps (no text was kept, or a step reads more)"
    return End(before=asked.before, low=low, high=low + unknown, why=why if unknown else "")


def _fates(asked: Question, where: str = "true") -> dict[str, int]:
    rows = asked.found.rows(f"SELECT outcome, sum(rows)::BIGINT AS n FROM fates WHERE {where} GROUP BY outcome")
    return {row["outcome"]: row["n"] for row in rows}


def _range(asked: Question, graph: Graph) -> End:
    execute = asked.found.connection.execute
    _reached(asked)
    blind = _blind(asked)
    if blind:
        fates = _fates(asked)
        high = asked.count("SELECT sum(rows) FROM reached") + fates.get("kept", 0) + fates.get("unknown", 0)
        return End(before=asked.before, low=0, high=high, why=f"no more can be said, since {blind}")
    _start(asked)
    if not asked.verify_falls and not asked.count("SELECT count(*) FROM touched"):
        return _alone(asked)
    graph.read_all(asked.names)
    if asked.verify_falls:
        shared = "SELECT key FROM keys GROUP BY key HAVING count(DISTINCT id) > 1"
        execute(f"INSERT INTO touched SELECT DISTINCT id FROM keys WHERE key IN ({shared})")
    graph.spread()
    _solo(asked)
    low, high, touched = _inside(asked)
    gone = "SELECT id FROM touched UNION ALL SELECT id FROM moved WHERE NOT kept"
    outside = _fates(asked, f'"at" > {asked.last} AND (id, "at") IN (SELECT id, "at" FROM moved WHERE kept)')
    stay = asked.count(f"SELECT count(*) FROM documents_stored WHERE id NOT IN ({gone})") + outside.get("kept", 0)
    why = f"{' and '.join(place.name for place in asked.corpus)} would compare {touched} documents anew"
    high += stay + outside.get("unknown", 0)
    return End(before=asked.before, low=low + stay, high=high, why=why, touched=touched)


def _reached(asked: Question) -> None:
    """Table reached(id, rows, is_kept, lost): what came to the first whole-corpus step; `lost` rows have no text."""
    gone = "SELECT id, false AS is_kept, text IS NULL AS is_lost FROM dropped WHERE step IN (SELECT unnest(?))"
    asked.found.connection.execute(
        "CREATE TABLE reached AS SELECT id, count(*) AS rows, bool_or(is_kept) AS is_kept, "
        "count(*) FILTER (WHERE is_lost) AS lost FROM (SELECT id, true AS is_kept, text IS NULL AS is_lost "
        f"FROM documents_stored UNION ALL {gone}) GROUP BY id",
        [asked.names],
    )


def _blind(asked: Question) -> str:
    """Why the texts that the whole-corpus steps compared are not at hand; empty where they are."""
    if asked.count("SELECT sum(lost) FROM reached"):
        return "texts of dropped documents were not kept (keep_dropped is below 1)"
    if asked.count("SELECT count(*) FROM fates WHERE outcome = 'unknown'"):
        return "some documents cannot be sent through the later steps"
    lost = asked.found.row("SELECT count(*) AS n FROM quarantine WHERE step IN (SELECT unnest(?))", asked.names)
    if lost["n"]:
        return "texts of quarantined documents are not kept"
    rewriting = [place.name for place in asked.told if place.number > asked.first and place.kind in REWRITES]
    return f"{', '.join(rewriting)} changes texts after they are compared" if rewriting else ""


def _start(asked: Question) -> None:
    """Table touched(id): what comes to, or goes from, a whole-corpus step; of a changed one, all that it removed for
    whom.
    """
    execute = asked.found.connection.execute
    execute("CREATE TABLE touched (id VARCHAR)")
    came = "SELECT id FROM reached UNION ALL SELECT id FROM sames"
    execute(f'INSERT INTO touched SELECT id FROM moved WHERE "at" < {asked.last} AND id IN ({came})')
    for place in asked.changed:
        if place.is_corpus:
            pairs = "SELECT unnest([id, kept_id]) FROM duplicates WHERE method = ?"
            execute(f"INSERT INTO touched {pairs}", [place.name])


def _solo(asked: Question) -> None:
    """Send what whole-corpus steps removed through the per-document steps after: a survivor may be among them."""
    for place in asked.corpus:
        asked.later.send(
            "SELECT id, any_value(source) AS source, any_value(url) AS url, any_value(text) AS text, count(*) AS rows "
            "FROM dropped WHERE step = ? AND id IN (SELECT id FROM touched) GROUP BY id",
            [place.name],
            place.number,
        )


def _inside(asked: Question) -> tuple[int, int, int]:
    """(lowest, highest, documents) of the touched ones.

    Documents without words are compared with none by `minhash`: where no `exact` stands, each of their rows counts.
    """
    asked.found.connection.execute(
        f"""CREATE TABLE inside AS SELECT t.id, coalesce(l.label, t.id) AS label, s.same, s.alone, r.rows,
            CASE WHEN t.id IN (SELECT id FROM moved WHERE NOT kept) THEN 'dropped' WHEN f.outcome IS NOT NULL
                THEN f.outcome WHEN r.is_kept THEN 'kept' ELSE 'dropped' END AS outcome
        FROM (SELECT DISTINCT id FROM touched) t LEFT JOIN labels l ON l.id = t.id LEFT JOIN sames s ON s.id = t.id
        LEFT JOIN (SELECT id, arg_max(outcome, "at") AS outcome FROM fates GROUP BY id) f ON f.id = t.id
        LEFT JOIN (SELECT id, max(rows) AS rows, bool_or(is_kept) AS is_kept FROM (
            SELECT id, rows, is_kept FROM reached UNION ALL SELECT id, rows, false FROM moved) GROUP BY id) r
            ON r.id = t.id
        WHERE t.id NOT IN (SELECT id FROM moved WHERE NOT kept AND "at" < {asked.first})"""
    )
    may = "outcome IN ('kept', 'unknown')"
    told = asked.found.row(
        f"""SELECT coalesce(sum(low), 0)::BIGINT AS low, coalesce(sum(one + many), 0)::BIGINT AS high,
            coalesce(sum(n), 0)::BIGINT AS n FROM (
                SELECT bool_and(outcome = 'kept')::INTEGER AS low, count(*) AS n,
                    count(DISTINCT same) FILTER (WHERE {may} AND NOT alone) AS one,
                    coalesce(sum(rows) FILTER (WHERE {may} AND alone), 0) AS many
                FROM inside GROUP BY label)"""
    )
    return told["low"], told["high"], told["n"]

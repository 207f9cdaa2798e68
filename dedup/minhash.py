"""Near-duplicates: MinHash bands propose pairs, exact Jaccard decides, one pass in keep order says who goes.

Phases, each a table of Parquet: docs (numbers, keys, band keys) -> twins (same words) -> groups (documents that share a
band) -> pairs -> wanted -> sets (their shingles) -> edges (verified) -> components -> fates -> gone -> verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from dedup.components import components
from dedup.corpus import ADDS, READS, twins, verdicts
from dedup.greedy import Greedy
from dedup.order import Keep
from dedup.tasks import Bands, Sets, Verify, band_names
from shards.step import Shuffle, Verdicts
from shards.store import join

PREDECESSORS = 3
"""A document is also compared with so many right before it in its group, where a chain of versions would break off."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Minhash:
    """Drop a document whose words nearly repeat those of a kept one: verified, never estimated.

    A pair is compared when it shares a band of its MinHash signature: at Jaccard similarity s with probability
    1 - (1 - s**rows)**bands, .92 at s = .8, .9996 at .9, 50% at .69 for the defaults, which are those of FineWeb
    (Penedo et al. 2024). A document goes when its exact Jaccard similarity with a document kept before it reaches
    `verify`; chains of lesser likeness merge nothing.

    ngram: words a shingle. verify: least similarity of a removal, 0..1, the boundary in. keep: which one stays
    (longest, earliest, latest, first_id), ties by id. seed: of the permutations, apart from the recipe's seed so that
    signatures stay comparable. leaders: a document is compared with so many first ones of its group and the three
    before it, so that cost is linear in the size of a group.
    Documents without words are left alone; those of fewer words than `ngram` have one shingle, all of their words.
    Memory: a batch of texts in a worker; 16 bytes a document of the largest component; the rest spills.
    """

    ngram: int = Field(default=5, ge=1, le=100)
    bands: int = Field(default=14, ge=1, le=1000)
    rows: int = Field(default=8, ge=1, le=100)
    verify: float = Field(default=0.8, gt=0, le=1)
    keep: Keep = "longest"
    seed: int = Field(default=1, ge=0, lt=2**32)
    leaders: int = Field(default=32, ge=1, le=10_000)

    name: ClassVar[str] = "minhash"
    version: ClassVar[int] = 1
    reads: ClassVar[frozenset[str]] = READS
    adds: ClassVar[pa.Schema] = ADDS
    libraries: ClassVar[tuple[str, ...]] = ()

    def decide(self, shards: Sequence[str], shuffle: Shuffle, work: str) -> Verdicts:
        docs = shuffle.map(
            Bands(ngram=self.ngram, bands=self.bands, rows=self.rows, seed=self.seed, keep=self.keep),
            shards,
            join(work, "docs"),
        )
        same = twins(shuffle, docs, work, "d.words > 0")
        pairs = self._pairs(shuffle, docs, same, work)
        edges = self._edges(shuffle, shards, docs, pairs, work)
        fates = self._fates(shuffle, docs, edges, work)
        gone = shuffle.query(_GONE, join(work, "gone"), fates=fates, twins=same)
        return verdicts(shuffle, docs, gone, work, rule="near_duplicate", threshold=self.verify)

    def _pairs(self, shuffle: Shuffle, docs: str, same: str, work: str) -> str:
        """Table(a, b): documents that share a band, a before b in keep order."""
        keyed = " UNION ALL ".join(
            f"SELECT d.{name} AS band, d.doc, d.worth, d.tie_a, d.tie_b FROM nodes AS d"
            for name in band_names(self.bands)
        )
        groups = shuffle.query(_GROUPS.format(keyed=keyed), join(work, "groups"), docs=docs, twins=same)
        ways = [_LEADERS.format(leaders=self.leaders)]
        ways += [_FOLLOWERS.format(leaders=self.leaders, step=step) for step in range(1, PREDECESSORS + 1)]
        pairs = f"SELECT DISTINCT c.a, c.b FROM ({' UNION ALL '.join(ways)}) AS c"
        return shuffle.query(pairs, join(work, "pairs"), groups=groups)

    def _edges(self, shuffle: Shuffle, shards: Sequence[str], docs: str, pairs: str, work: str) -> str:
        """Table(a, b, similarity): the pairs that reach `verify`."""
        wanted = shuffle.query(_WANTED, join(work, "wanted"), pairs=pairs, docs=docs)
        sets = shuffle.map(Sets(ngram=self.ngram, wanted=wanted), shards, join(work, "sets"))
        return shuffle.stream(
            _COMPARED, Verify(at_least=self.verify), join(work, "edges"), key="a", order=["b"], pairs=pairs, sets=sets
        )

    def _fates(self, shuffle: Shuffle, docs: str, edges: str, work: str) -> str:
        """Table(doc, kept, similarity): what one pass over each component decides."""
        labels = components(shuffle, edges, work)
        return shuffle.stream(
            _DECIDED,
            Greedy(),
            join(work, "fates"),
            key="component",
            order=["worth", "place_a", "place_b", "b", "a"],
            edges=edges,
            labels=labels,
            docs=docs,
        )


# Documents of the same words are one node; the first in keep order stands for them.
_GROUPS = """WITH nodes AS (
        SELECT d.* FROM docs AS d LEFT JOIN twins AS t ON t.doc = d.doc WHERE t.doc IS NULL AND d.words > 0),
    keyed AS ({keyed}),
    placed AS (SELECT d.band, d.doc,
        ROW_NUMBER() OVER (PARTITION BY d.band ORDER BY d.worth, d.tie_a, d.tie_b, d.doc) AS place,
        LEAD(d.doc) OVER (PARTITION BY d.band ORDER BY d.worth, d.tie_a, d.tie_b, d.doc) AS following
        FROM keyed AS d)
    SELECT p.band, p.doc, CAST(p.place AS BIGINT) AS place FROM placed AS p
    WHERE p.place > 1 OR p.following IS NOT NULL"""

_LEADERS = """SELECT l.doc AS a, r.doc AS b FROM groups AS l JOIN groups AS r ON r.band = l.band
    WHERE l.place <= {leaders} AND r.place > l.place"""

_FOLLOWERS = """SELECT l.doc AS a, r.doc AS b FROM groups AS l
    JOIN groups AS r ON r.band = l.band AND r.place = l.place + {step} WHERE l.place > {leaders}"""

_WANTED = """SELECT d.shard, d.row FROM docs AS d
    JOIN (SELECT p.a AS doc FROM pairs AS p UNION SELECT p.b AS doc FROM pairs AS p) AS w ON w.doc = d.doc
    ORDER BY d.shard, d.row"""

# A leader's set comes once, before those of the documents that are compared with it.
_COMPARED = """SELECT p.a, p.b, s.shingles FROM pairs AS p JOIN sets AS s ON s.doc = p.b
    UNION ALL
    SELECT f.a, CAST(-1 AS BIGINT) AS b, s.shingles FROM (SELECT DISTINCT p.a FROM pairs AS p) AS f
    JOIN sets AS s ON s.doc = f.a"""

_DECIDED = """SELECT l.component, e.b, e.a, d.worth, d.tie_a AS place_a, d.tie_b AS place_b,
    k.tie_a, k.tie_b, e.similarity
    FROM edges AS e JOIN labels AS l ON l.doc = e.b JOIN docs AS d ON d.doc = e.b JOIN docs AS k ON k.doc = e.a"""

_GONE = """SELECT f.doc, f.kept, f.similarity FROM fates AS f
    UNION ALL
    SELECT t.doc, COALESCE(f.kept, t.head) AS kept, COALESCE(f.similarity, CAST(1 AS DOUBLE)) AS similarity
    FROM twins AS t LEFT JOIN fates AS f ON f.doc = t.head"""

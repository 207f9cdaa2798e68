"""Documents and the keys by which whole-corpus steps bring them together: who is linked to whom by chains of keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from jobs.report.database import Output
from jobs.verbs.whatif_changes import Place
from jobs.verbs.whatif_later import BATCH

KEYS = pa.schema([("id", pa.string()), ("key", pa.int64())])


class Graph:
    """Documents and their keys, in tables.

    keys(id, key): two documents of one key may be compared. sames(id, same, alone): of equal `same` at most one stays,
    but for documents that stand alone. labels(id, label): the linked groups of what is touched.
    """

    def __init__(self, found: Output, corpus: Sequence[Place]) -> None:
        self.found = found
        self.corpus = corpus
        self.has_exact = any(place.kind == "exact" for place in corpus)
        found.connection.execute("CREATE TABLE keys (id VARCHAR, key BIGINT)")
        found.connection.execute("CREATE TABLE sames (id VARCHAR, same VARCHAR, alone BOOLEAN)")

    def read_all(self, names: list[str]) -> None:
        """The keys of every document that came to the first whole-corpus step."""
        gone = "SELECT id, text FROM dropped WHERE step IN (SELECT unnest(?))"
        query = f"SELECT id, text FROM documents_stored UNION ALL {gone}"
        for batch in self.found.stream(query, [names], BATCH):
            self.read(batch)

    def read(self, batch: pa.RecordBatch) -> None:
        """Note the keys of documents with the texts that they have where they are compared."""
        from text import normalised_hash, tokenize

        ids, texts = batch.column("id"), batch.column("text")
        whole = normalised_hash(texts)
        words = np.diff(tokenize(texts).words_only()[1])
        same = pa.array([f"{low}/{high}" for low, high in whole.tolist()], pa.string())
        alone = pa.array((words == 0) & (not self.has_exact))
        self.found.insert("sames", pa.table({"id": ids, "same": same, "alone": alone}))
        for place in self.corpus:
            if place.kind == "exact":
                self.found.insert("keys", pa.table([ids, pa.array(np.ascontiguousarray(whole[:, 0]))], schema=KEYS))
            else:
                self.found.insert("keys", _bands(place, ids, texts, words > 0))

    def spread(self) -> None:
        """Add to `touched` all that is linked to it, and label the linked groups."""
        execute = self.found.connection.execute
        # Rows of one id are identical and were read as often as they came.
        execute("CREATE OR REPLACE TABLE sames AS SELECT DISTINCT * FROM sames")
        execute("CREATE TABLE frontier AS SELECT DISTINCT id FROM touched")
        while self.found.row("SELECT count(*) AS n FROM frontier")["n"]:
            execute(
                "CREATE OR REPLACE TABLE frontier AS SELECT DISTINCT k.id FROM keys k WHERE k.key IN "
                "(SELECT key FROM keys WHERE id IN (SELECT id FROM frontier)) AND k.id NOT IN (SELECT id FROM touched)"
            )
            execute("INSERT INTO touched SELECT id FROM frontier")
        execute("CREATE TABLE links AS SELECT DISTINCT id, key FROM keys WHERE id IN (SELECT id FROM touched)")
        execute("CREATE TABLE labels AS SELECT DISTINCT id, id AS label FROM links")
        while True:
            execute(
                "CREATE OR REPLACE TABLE next_labels AS SELECT k.id, min(g.label) AS label FROM links k JOIN "
                "(SELECT key, min(label) AS label FROM links JOIN labels USING (id) GROUP BY key) g USING (key) "
                "GROUP BY k.id"
            )
            moved = self.found.row(
                "SELECT count(*) AS n FROM labels JOIN next_labels n USING (id) WHERE labels.label <> n.label"
            )["n"]
            execute("CREATE OR REPLACE TABLE labels AS FROM next_labels")
            if not moved:
                return


def _bands(place: Place, ids: pa.Array, texts: pa.Array, has_words: npt.NDArray[np.bool_]) -> pa.Table:
    """A key a band of each text's signature; a text without words is never compared and has none."""
    from dedup import signatures

    step = place.new
    signed = signatures(texts, ngram=step.ngram, permutations=step.bands * step.rows, seed=step.seed)[has_words]
    # Equal bands get equal keys, by any mixing; that others meet by chance only widens the range.
    mixers = np.random.default_rng(7).integers(1, (1 << 63) - 1, step.rows).astype(np.uint64) | np.uint64(1)
    keys = (signed.reshape(len(signed), step.bands, step.rows).astype(np.uint64) * mixers).sum(axis=2, dtype=np.uint64)
    rows = np.repeat(np.flatnonzero(has_words), step.bands)
    return pa.table([ids.take(pa.array(rows)), pa.array(keys.reshape(-1).view(np.int64))], schema=KEYS)

"""Which document goes to which token shard: decided by sums over the corpus and a document's hash, by nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from shards.step import Shuffle
from shards.store import ParquetWriter, join, read_batches, tables
from train.tokenise.encode import SLOT_BITS

SLOTS = 1 << SLOT_BITS
MAX_SHARDS = 1 << 21  # 31 bits of slot times the shards of a domain stay exact in a double
PLAN = pa.schema([("domain", pa.string()), ("first_shard", pa.int32()), ("shard_count", pa.int32())])
MAX_DOMAINS = 10_000
UNKNOWN = "und"  # ISO 639's code, for documents of which no language is known
Sums: TypeAlias = dict[tuple[str, str, str], Counter[str]]
ALL = ""  # the domain of a layout that does not tell domains apart


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The shards of each domain: `count` of them from `first` on, each a range of hashes of equal width.

    table: the same as a Parquet table, for the join. domains: {domain: (first, count)} in order of first.
    sums: {(domain, source, language): documents, tokens, bytes of text}.
    """

    table: str
    by_domain: bool
    domains: dict[str, tuple[int, int]]
    sums: Sums = field(repr=False)

    @classmethod
    def of(cls, shuffle: Shuffle, encoded: str, work: str, *, shard_tokens: int, by_domain: bool) -> Layout:
        sums = _sums(shuffle, encoded, work)
        needs: dict[str, Counter[str]] = {} if by_domain else {ALL: Counter()}
        for (domain, *_), counts in sorted(sums.items()):
            needs.setdefault(domain if by_domain else ALL, Counter()).update(counts)
        if len(needs) > MAX_DOMAINS:
            raise ValueError(f"by_domain: {len(needs)} domains would make as many shards; set by_domain: false")
        if not needs:
            needs[ALL] = Counter()
        domains, first = {}, 0
        for domain, counts in needs.items():
            # Not more shards than documents, or most of them would be empty.
            count = max(1, min(-(-counts["tokens"] // shard_tokens), counts["documents"]))
            if first + count > MAX_SHARDS:
                raise ValueError(f"shard_tokens: {shard_tokens} makes more than {MAX_SHARDS} shards; raise it")
            domains[domain] = (first, count)
            first += count
        table = join(work, "layout")
        with ParquetWriter(join(table, "part-00000.parquet"), PLAN, with_digest=False) as writer:
            rows = [(domain, start, count) for domain, (start, count) in domains.items()]
            writer.write(pa.record_batch([list(column) for column in zip(*rows, strict=True)], schema=PLAN))
        return cls(table=table, by_domain=by_domain, domains=domains, sums=sums)

    @property
    def shards(self) -> int:
        return sum(count for _, count in self.domains.values())

    def owners(self) -> list[str | None]:
        """The domain of each shard's documents; None where a shard holds all domains."""
        told = [(name if self.by_domain else None, count) for name, (_, count) in self.domains.items()]
        return [name for name, count in told for _ in range(count)]

    def sql(self) -> str:
        """Encoded parts with their shard. Exact in doubles: a slot has 31 bits, and dividing by 2^31 rounds nothing."""
        on = "p.domain = e.domain" if self.by_domain else "1 = 1"
        shard = f"p.first_shard + CAST(FLOOR(CAST(e.slot AS DOUBLE) * p.shard_count / {SLOTS}e0) AS INT)"
        return f"""
            SELECT CAST({shard} AS INT) AS shard, e.order_key, e.id, e.input_shard, e.input_row, e.part,
                   e.source, e.domain, e.language, e.text_bytes, e.token_count, e.tokens
            FROM encoded e JOIN layout p ON {on}
        """

    def totals(self) -> dict[str, Any]:
        """Documents, tokens and bytes of text: of all, by domain, by source and by language."""
        whole: Counter[str] = Counter()
        parts: tuple[dict[str, Counter[str]], ...] = ({}, {}, {})
        for key, counts in self.sums.items():
            whole.update(counts)
            for part, name in zip(parts, key, strict=True):
                part.setdefault(name, Counter()).update(counts)
        told = [{name: _told(part[name]) for name in sorted(part)} for part in parts]
        return {**_told(whole), "domains": told[0], "sources": told[1], "languages": told[2]}

    def check(self, written: list[dict[str, Any]]) -> None:
        """Raise unless the shards hold each document and each token once."""
        for what in ("documents", "tokens"):
            made, wanted = sum(row[what] for row in written), sum(counts[what] for counts in self.sums.values())
            if made != wanted:
                raise RuntimeError(f"token shards: {made} {what} written of {wanted} encoded")


def _told(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in ("documents", "tokens", "text_bytes")}


def _sums(shuffle: Shuffle, encoded: str, work: str) -> Sums:
    sql = f"""
        SELECT domain, source, COALESCE(language, '{UNKNOWN}') AS language, COUNT(*) AS documents,
               CAST(SUM(CAST(token_count AS BIGINT)) AS BIGINT) AS tokens,
               CAST(SUM(text_bytes) AS BIGINT) AS text_bytes
        FROM encoded WHERE part = 0 GROUP BY domain, source, COALESCE(language, '{UNKNOWN}')
    """
    told = shuffle.query(sql, join(work, "sums"), encoded=encoded)
    found: Sums = {}
    for path in tables(told):
        for batch in read_batches(path):
            for row in batch.to_pylist():
                key = row.pop("domain"), row.pop("source"), row.pop("language")
                found[key] = Counter({name: int(value) for name, value in row.items()})
    return found


def last_sampled_slot(shuffle: Shuffle, keys: str, sample_bytes: int) -> int:
    """The last slot of the sample: documents in order of their slots until they hold sample_bytes, or all of them.

    Found in a histogram first, so that no engine has to sort the whole corpus for it.
    """
    if shuffle.scalar("SELECT COALESCE(SUM(text_bytes), 0) FROM keys", keys=keys) <= sample_bytes:
        return SLOTS - 1
    coarse = f"CAST(FLOOR(slot / {1 << (SLOT_BITS - 16)}e0) AS INT)"
    bucket = shuffle.scalar(
        f"""SELECT MIN(bucket) FROM (
                SELECT bucket, SUM(text_bytes) OVER (ORDER BY bucket) AS upto
                FROM (SELECT {coarse} AS bucket, SUM(text_bytes) AS text_bytes FROM keys GROUP BY {coarse}) AS h
            ) AS c WHERE upto >= {sample_bytes}""",
        keys=keys,
    )
    before = shuffle.scalar(f"SELECT COALESCE(SUM(text_bytes), 0) FROM keys WHERE {coarse} < {bucket}", keys=keys)
    return shuffle.scalar(
        f"""SELECT MIN(slot) FROM (
                SELECT slot, SUM(text_bytes) OVER (ORDER BY slot) AS upto
                FROM (SELECT slot, SUM(text_bytes) AS text_bytes FROM keys WHERE {coarse} = {bucket} GROUP BY slot) AS h
            ) AS c WHERE upto >= {sample_bytes - before}""",
        keys=keys,
    )

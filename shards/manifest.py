"""The account of a step: what went in, what came out and why, in numbers that add up over shards.

A `Tally` is one step's account of one shard; tallies add up to the step's manifest. Conservation is checked at every
level: in = kept + dropped + quarantined, for rows and for the bytes they came in with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from shards.digest import MODULUS, to_hex
from shards.store import join, read_json

FORMAT = "gristmill-1"
OUTCOMES = ("kept", "dropped", "quarantined")
STEPS_PER_OCTAVE = 8


class ConservationError(AssertionError):
    """Rows or bytes went in that are neither kept, dropped nor quarantined: a bug, and the step is not finished."""


@dataclass(kw_only=True)
class Tally:
    """One step's account of one shard (or, added up, of the whole dataset).

    rows: in, kept, dropped, quarantined. bytes: the same, of the rows as they came in, and `out`, of the text kept.
    rules: dropped rows by their first failing rule. digests: of the rows of data, dropped and signals.
    shards: name, rows, bytes, digest of each data file. files: name, bytes of those of dropped, signals, quarantine.
    damaged_ranges: byte ranges of inputs that gave no records, and so hold an unknown number of them.
    histograms: {signal: {lower edge of a bucket: rows}}, see `buckets`. seconds and cpu_seconds are sums over shards.
    """

    rows: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    domains: dict[str, Counter[str]] = field(default_factory=dict)
    digests: dict[str, int] = field(default_factory=dict)
    histograms: dict[str, Counter[float]] = field(default_factory=dict)
    shards: list[dict[str, Any]] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    damaged_ranges: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_bytes: int = 0

    def check(self, where: str) -> None:
        """Raise ConservationError unless in = kept + dropped + quarantined for rows and for bytes."""
        for what, counts in (("rows", self.rows), ("bytes", self.bytes)):
            out = sum(counts[outcome] for outcome in OUTCOMES)
            if counts["in"] != out:
                told = ", ".join(f"{outcome} {counts[outcome]}" for outcome in OUTCOMES)
                raise ConservationError(f"{where}: {what} in {counts['in']} are not {told}")

    def add(self, other: Tally) -> None:
        self.rows.update(other.rows)
        self.bytes.update(other.bytes)
        self.rules.update(other.rules)
        for domain, counts in other.domains.items():
            self.domains.setdefault(domain, Counter()).update(counts)
        for kind, value in other.digests.items():
            self.digests[kind] = (self.digests.get(kind, 0) + value) % MODULUS
        for signal, counted in other.histograms.items():
            self.histograms.setdefault(signal, Counter()).update(counted)
        self.shards += other.shards
        self.files += other.files
        self.damaged_ranges += other.damaged_ranges
        self.seconds += other.seconds
        self.cpu_seconds += other.cpu_seconds
        self.peak_bytes = max(self.peak_bytes, other.peak_bytes)

    def observe(self, signals: pa.RecordBatch) -> None:
        """Count each numeric signal of a batch into its histogram."""
        for name, column in zip(signals.schema.names, signals.columns, strict=True):
            if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
                self.histograms.setdefault(name, Counter()).update(buckets(column))

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": {key: self.rows[key] for key in ("in", *OUTCOMES)},
            "bytes": {key: self.bytes[key] for key in ("in", *OUTCOMES, "out")},
            "rules": dict(sorted(self.rules.items())),
            "domains": {name: dict(sorted(counts.items())) for name, counts in sorted(self.domains.items())},
            "digests": {kind: to_hex(value) for kind, value in sorted(self.digests.items())},
            "histograms": {name: sorted(counts.items()) for name, counts in sorted(self.histograms.items())},
            "shards": self.shards,
            "files": self.files,
            "damaged_ranges": self.damaged_ranges,
            "seconds": round(self.seconds, 3),
            "cpu_seconds": round(self.cpu_seconds, 3),
            "peak_bytes": self.peak_bytes,
        }

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Tally:
        return cls(
            rows=Counter(told["rows"]),
            bytes=Counter(told["bytes"]),
            rules=Counter(told["rules"]),
            domains={name: Counter(counts) for name, counts in told["domains"].items()},
            digests={kind: int(value, 16) for kind, value in told["digests"].items()},
            histograms={name: Counter(dict(pairs)) for name, pairs in told["histograms"].items()},
            shards=list(told["shards"]),
            files=list(told["files"]),
            damaged_ranges=told["damaged_ranges"],
            seconds=told["seconds"],
            cpu_seconds=told["cpu_seconds"],
            peak_bytes=told["peak_bytes"],
        )


def buckets(column: pa.Array) -> Counter[float]:
    """Rows by bucket: eight buckets an octave, named by the edge nearer to zero; shards add up exactly.

    Nulls and not-a-number are left out; zero has a bucket of its own.
    """
    numbers = np.asarray(column.drop_null().cast(pa.float64()).to_numpy(zero_copy_only=False))
    mantissa, exponent = np.frexp(numbers[np.isfinite(numbers)])
    edges = np.ldexp(np.trunc(mantissa * 2 * STEPS_PER_OCTAVE) / (2 * STEPS_PER_OCTAVE), exponent)
    values, counts = np.unique(edges, return_counts=True)
    return Counter(dict(zip(values.tolist(), counts.tolist(), strict=True)))


def total(tallies: Iterable[Tally]) -> Tally:
    """All tallies added up."""
    result = Tally()
    for tally in tallies:
        result.add(tally)
    return result


def read_manifest(folder: str) -> dict[str, Any]:
    """The manifest of a finished step. Raises FileNotFoundError, in one line, where it is missing or torn."""
    found = read_json(join(folder, "manifest.json"))
    if found is None:
        raise FileNotFoundError(f"{folder}: its manifest.json is missing or torn; run the recipe again: it mends it")
    return found


def manifest(
    *,
    step: str,
    kind: str,
    settings: dict[str, Any],
    code: dict[str, Any],
    fingerprint: str,
    inputs: list[Any],
    tally: Tally,
) -> dict[str, Any]:
    """The content of manifest.json; raises ConservationError when the account does not add up."""
    tally.check(step)
    told = tally.to_json()
    digests = told.pop("digests")
    return {
        "format": FORMAT,
        "step": step,
        "kind": kind,
        "settings": settings,
        "code": code,
        "fingerprint": fingerprint,
        "inputs": inputs,
        **told,
        "digest": digests.get("data"),
        "dropped_digest": digests.get("dropped"),
        "signals_digest": digests.get("signals"),
    }

"""A made output of a run: the exact layout on disk, believable numbers, and hostile text where people will look.

It is quick to make and needs no step: tests of the report and of the reading verbs stand on it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import xxhash

from shards.manifest import Tally, manifest
from shards.schema import DOCUMENT, DROPPED, QUARANTINE
from shards.store import ParquetWriter, write_json

HOSTILE = (
    '<script>alert(1)</script> "><img src=x onerror=alert(2)> {{ 7*7 }} {% raw %} \x1b[31mred\x1b[0m \x07 '
    "safe\u202egnp.exe \u2066isolated\u2069 zero\u200bwidth ' onmouseover='alert(3) </pre></style><!-- \x9b2J "
    "\u2028 end"
)
LONG = "unbroken" * 400
WORDS = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "a",
    "is",
    "that",
    "for",
    "it",
    "as",
    "was",
    "with",
    "be",
    "by",
    "on",
    "not",
    "he",
    "his",
    "but",
    "at",
    "are",
    "this",
    "have",
    "from",
    "or",
    "had",
    "an",
    "they",
    "which",
    "one",
    "you",
    "were",
    "all",
    "her",
    "she",
    "there",
    "would",
    "their",
    "we",
    "him",
    "been",
    "has",
    "when",
    "who",
    "will",
    "no",
    "more",
    "if",
    "out",
    "so",
    "up",
    "said",
    "what",
    "its",
    "about",
    "river",
    "engine",
    "winter",
    "library",
    "theory",
    "garden",
    "market",
    "letter",
    "number",
    "signal",
    "window",
    "history",
    "method",
    "season",
    "bridge",
]
LANGUAGES = ("eng_Latn", "eng_Latn", "eng_Latn", "eng_Latn", "fra_Latn", "deu_Latn", "jpn_Jpan", "und")
WANTED = ("eng_Latn", "fra_Latn", "deu_Latn")
COPIES = pa.schema([("copies", pa.int32()), ("first_seen", pa.timestamp("us", tz="UTC"))])
LANGUAGE = pa.schema([("language", pa.string()), ("language_score", pa.float64())])
SHARDS = 2

Row = dict[str, Any]
Drop = dict[str, Any]


@dataclass
class Made:
    """One step's outcome over all rows."""

    kept: list[Row]
    dropped: list[tuple[Row, Drop]] = field(default_factory=list)
    quarantined: list[tuple[Row, str, str]] = field(default_factory=list)
    signals: list[Row] = field(default_factory=list)


def make(out: Path, *, rows: int = 400, seed: int = 17, keep_dropped: float = 1.0) -> Path:
    """Write a whole output under `out` and return it."""
    told: list[dict[str, Any]] = []
    schema = DOCUMENT
    batch = documents(rows, seed)
    lost = [
        (location, "BadGzipError", "member is cut short", size)
        for location, size in (("a.warc.gz:1040", 811), ("b.warc.gz:88", 95))
    ]
    for number, (kind, work) in enumerate(STEPS):
        made = work(batch)
        schema = pa.schema([*schema, *{"language": LANGUAGE, "exact": COPIES}.get(kind, pa.schema([]))])
        told.append(
            write_step(
                out,
                number,
                kind,
                batch,
                made=made,
                schema=schema,
                lost=lost if kind == "read" else [],
                settings=SETTINGS.get(kind, {}),
                keep_dropped=keep_dropped,
            )
        )
        batch = made.kept
    told.append(write_tokens(out, len(STEPS), batch))
    write_json(str(out / "run.json"), run(told, seed, keep_dropped))
    return out


def documents(rows: int, seed: int) -> list[Row]:
    """Rows as they are read: a few hostile, some repeated, some nearly repeated, some short."""
    dice = random.Random(seed)
    found: list[Row] = []
    for number in range(rows):
        text = _text(dice, number, found)
        source = "crawl" if number % 5 else "books"
        url = f"https://site{dice.randrange(12)}.example.org/page/{number}" if source == "crawl" else None
        date = datetime(2019, 1, 1, tzinfo=UTC) + timedelta(days=dice.randrange(2500)) if dice.random() < 0.8 else None
        said = xxhash.xxh3_128_hexdigest(f"{seed}/{number}/{text}".encode())
        found.append(
            {
                "id": said,
                "source_id": f"<urn:uuid:{number:08d}>",
                "source": source,
                "domain": "web" if source == "crawl" else "books",
                "url": url,
                "date": date,
                "text": text,
                "copies": 1,
            }
        )
    if rows > 20:
        found[7]["url"] = "javascript:alert('x')//<b>" + "\u202e"
        found[11]["source"] = found[11]["domain"] = "<i>books</i>"
    return found


def _text(dice: random.Random, number: int, before: list[Row]) -> str:
    if number % 23 == 5 and before:
        return str(dice.choice(before)["text"])
    if number % 17 == 3 and before:
        words = str(dice.choice(before)["text"]).split(" ")
        words[dice.randrange(len(words))] = f"changed{number}"
        return " ".join(words)
    size = int(dice.lognormvariate(4.6, 0.8)) + 1
    sentence = " ".join(dice.choice(WORDS) for _ in range(size))
    if number % 29 == 1:
        sentence = f"{HOSTILE} {sentence} {LONG if number % 2 else ''}"
    if number % 13 == 2:
        sentence += f" write to person{number}@example.org or 192.0.2.{number % 250}"
    if number % 41 == 9:
        sentence += " Janet's ducks lay 16 eggs per day."
    return sentence.capitalize() + "."


def _read(rows: list[Row]) -> Made:
    return _split(rows, lambda row: _drop("http_status", value=404.0, threshold=200.0) if _pick(row, 40) else None)


def _extract(rows: list[Row]) -> Made:
    failing = [row for row in rows if _pick(row, 90, "extract")]
    made = _split(
        [row for row in rows if row not in failing],
        lambda row: _drop("too_deep", 900.0, 512.0) if _pick(row, 70, "deep") else None,
    )
    made.quarantined = [(row, "TimeoutError", "extraction took longer than 10 s of processor time") for row in failing]
    return made


def _url(rows: list[Row]) -> Made:
    return _split(
        rows, lambda row: _drop("blocked_domain", evidence="site3.example.org") if "site3." in str(row["url"]) else None
    )


def _language(rows: list[Row]) -> Made:
    for row in rows:
        row["language"] = LANGUAGES[_hash(row, "language") % len(LANGUAGES)]
        row["language_score"] = round(0.5 + (_hash(row, "score") % 500) / 1000, 4)

    def judge(row: Row) -> Drop | None:
        if row["language"] not in WANTED:
            return _drop("language", evidence=row["language"])
        return _drop("min_score", row["language_score"], 0.55) if row["language_score"] < 0.55 else None

    made = _split(rows, judge)
    made.signals = [
        {"id": row["id"], "language": row["language"], "language_score": row["language_score"]} for row in rows
    ]
    return made


def quality_signals(text: str) -> dict[str, float]:
    """The made signals of a text."""
    words = text.split()
    return {
        "words": float(len(words)),
        "mean_word_characters": sum(map(len, words)) / len(words),
        "stop_words": float(len({"the", "be", "to", "of", "and", "that", "have", "with"} & set(text.lower().split()))),
        "symbol_ratio": text.count("#") / len(words),
    }


def _quality(rows: list[Row]) -> Made:
    measured = {row["id"]: quality_signals(row["text"]) for row in rows}

    def judge(row: Row) -> Drop | None:
        told = measured[row["id"]]
        failed = []
        if told["words"] < 50:
            failed.append(("gopher_quality.min_words", told["words"], 50.0))
        if told["mean_word_characters"] > 10:
            failed.append(("gopher_quality.max_mean_word_characters", told["mean_word_characters"], 10.0))
        if told["stop_words"] < 2:
            failed.append(("gopher_quality.min_stop_words", told["stop_words"], 2.0))
        if not failed:
            return None
        return {**_drop(*failed[0]), "rules": [rule for rule, _, _ in failed]}

    made = _split(rows, judge)
    made.signals = [{"id": row["id"], **measured[row["id"]]} for row in rows]
    return made


def _redact(rows: list[Row]) -> Made:
    signals, kept = [], []
    for row in rows:
        words = row["text"].split(" ")
        emails = [word for word in words if "@example" in word]
        addresses = [word for word in words if word.startswith("192.0.2.")]
        text = " ".join("<EMAIL>" if w in emails else "<IP>" if w in addresses else w for w in words)
        kept.append({**row, "text": text})
        signals.append({"id": row["id"], "email": len(emails), "ip": len(addresses)})
    return Made(kept=kept, signals=signals)


def _exact(rows: list[Row]) -> Made:
    survivors: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: str(row["id"])):
        survivors.setdefault(row["text"], row)
    counts = Counter(row["text"] for row in rows)
    for text, row in survivors.items():
        row["copies"], row["first_seen"] = counts[text], row["date"]

    def judge(row: Row) -> Drop | None:
        kept = survivors[row["text"]]
        return None if kept is row else _drop("duplicate", 1.0, 1.0, evidence=kept["id"])

    return _split(rows, judge)


def _minhash(rows: list[Row]) -> Made:
    first: dict[str, Row] = {}
    goes: dict[str, tuple[str, float]] = {}
    shingles = {row["id"]: _shingles(row["text"]) for row in rows}
    for row in sorted(rows, key=lambda row: (-len(row["text"]), row["id"])):
        near = [
            (_jaccard(shingles[row["id"]], shingles[other["id"]]), other)
            for other in {first[s]["id"]: first[s] for s in shingles[row["id"]] if s in first}.values()
        ]
        similarity, survivor = max(near, key=lambda pair: (pair[0], pair[1]["id"]), default=(0.0, row))
        if similarity >= 0.8:
            goes[row["id"]] = survivor["id"], similarity
            survivor["copies"] += row["copies"]
        else:
            for shingle in shingles[row["id"]]:
                first.setdefault(shingle, row)
    return _split(
        rows,
        lambda row: (
            _drop("near_duplicate", goes[row["id"]][1], 0.8, evidence=goes[row["id"]][0]) if row["id"] in goes else None
        ),
    )


def _shingles(text: str) -> set[str]:
    words = text.lower().split()
    return {" ".join(words[at : at + 5]) for at in range(max(len(words) - 4, 1))}


def _jaccard(one: set[str], two: set[str]) -> float:
    return len(one & two) / len(one | two)


def _decontaminate(rows: list[Row]) -> Made:
    return _split(
        rows,
        lambda row: (
            _drop("contaminated", 1.0, 0.8, evidence="gsm8k_test/12 at 130:452") if "ducks lay" in row["text"] else None
        ),
    )


STEPS: tuple[tuple[str, Callable[[list[Row]], Made]], ...] = (
    ("read", _read),
    ("extract", _extract),
    ("url", _url),
    ("language", _language),
    ("quality", _quality),
    ("redact", _redact),
    ("exact", _exact),
    ("minhash", _minhash),
    ("decontaminate", _decontaminate),
)
GROUPS = {
    "read": 0,
    "extract": 0,
    "url": 1,
    "language": 1,
    "quality": 1,
    "redact": 1,
    "exact": 2,
    "minhash": 3,
    "decontaminate": 4,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "language": {"keep": list(WANTED), "min_score": 0.55},
    "minhash": {"ngram": 5, "bands": 14, "rows": 8, "verify": 0.8, "keep": "longest"},
}


def write_step(
    out: Path,
    number: int,
    kind: str,
    rows: list[Row],
    *,
    made: Made,
    schema: pa.Schema,
    lost: list[tuple[str, str, str, int]],
    settings: dict[str, Any],
    keep_dropped: float,
) -> dict[str, Any]:
    """Write a step's folder and return its entry for run.json."""
    folder = out / f"{number:02d}-{kind}"
    last = GROUPS.get(kind) != GROUPS.get(STEPS[number + 1][0] if number + 1 < len(STEPS) else "")
    tally = Tally(seconds=1.5 * (number + 1), cpu_seconds=1.4 * (number + 1), peak_bytes=(180 + 20 * number) << 20)
    size = {row["id"]: len(row["text"].encode()) * (6 if number < 2 else 1) for row in rows}
    dropped = [_dropped_row(row, drop, kind, keep_dropped) for row, drop in made.dropped]
    quarantined = [
        {
            "id": row["id"],
            "source": row["source"],
            "location": row["url"] or row["source_id"],
            "step": kind,
            "error": error,
            "message": message,
            "bytes": size[row["id"]],
        }
        for row, error, message in made.quarantined
    ] + [
        {
            "id": None,
            "source": "crawl",
            "location": location,
            "step": kind,
            "error": error,
            "message": message,
            "bytes": nbytes,
        }
        for location, error, message, nbytes in lost
    ]
    signals = pa.Table.from_pylist(made.signals) if made.signals else None
    for name, table in (
        ("data", _table(made.kept, schema) if last else None),
        ("dropped", _table(dropped, DROPPED) if dropped else None),
        ("quarantine", _table(quarantined, QUARANTINE) if quarantined else None),
        ("signals", signals),
    ):
        if table is not None:
            tally.digests[name] = _write_parts(folder / name, table)
    if signals is not None:
        for piece in signals.to_batches():
            tally.observe(piece)
    ids = {name: [row["id"] for row in part] for name, part in (("kept", made.kept), ("dropped", dropped))}
    ids["quarantined"] = [row["id"] for row, _, _ in made.quarantined]
    for outcome, members in ids.items():
        tally.rows[outcome] += len(members)
        tally.bytes[outcome] += sum(size[member] for member in members)
    tally.rows["quarantined"] += len(lost)
    tally.bytes["quarantined"] += sum(nbytes for *_, nbytes in lost)
    tally.rows["in"] = len(rows) + len(lost)
    tally.bytes["in"] = sum(size.values()) + sum(nbytes for *_, nbytes in lost)
    tally.bytes["out"] = sum(len(row["text"].encode()) for row in made.kept)
    tally.rules.update(row["rule"] for row in dropped)
    for key, part in (("in", rows), ("kept", made.kept)):
        for domain, count in Counter(row["domain"] for row in part).items():
            tally.domains.setdefault(domain, Counter())[key] += count
    inputs = [
        {"name": "crawl/a.warc.gz", "bytes": 48_211, "digest": "9f" * 16},
        {"name": "books/b.jsonl", "bytes": 7_003, "digest": "03" * 16},
    ]
    told = manifest(
        step=kind,
        kind=kind,
        settings=settings,
        code={"version": 1, "libraries": {"pyarrow": "26.0.1"}},
        fingerprint=f"{number:016x}",
        inputs=inputs if kind == "read" else [],
        tally=tally,
    )
    write_json(str(folder / "manifest.json"), told)
    return {
        "step": kind,
        "kind": kind,
        "folder": folder.name,
        "data": last,
        "group": GROUPS[kind],
        "fingerprint": told["fingerprint"],
        **{name: told[name] for name in ("digest", "dropped_digest", "signals_digest")},
    }


def write_tokens(out: Path, number: int, rows: list[Row]) -> dict[str, Any]:
    """The folder of token shards: documents and manifest only."""
    folder = out / f"{number:02d}-tokens"
    counts = [len(row["text"]) // 4 for row in rows]
    table = pa.table(
        {
            "id": [row["id"] for row in rows],
            "source": [row["source"] for row in rows],
            "domain": [row["domain"] for row in rows],
            "shard": pa.array([0] * len(rows), pa.int32()),
            "start": pa.array([sum(counts[:at]) for at in range(len(counts))], pa.int64()),
            "token_count": pa.array(counts, pa.int32()),
        }
    )
    _write_parts(folder / "documents", table)
    size = sum(len(row["text"].encode()) for row in rows)
    by_domain: Counter[str] = Counter()
    for row, count in zip(rows, counts, strict=True):
        by_domain[row["domain"]] += count
    told = {
        "format": "gristmill-1",
        "step": "tokens",
        "kind": "tokens",
        "settings": {},
        "code": {},
        "fingerprint": "ab" * 8,
        "inputs": [],
        "rows": {"in": len(rows), "kept": len(rows), "dropped": 0, "quarantined": 0},
        "bytes": {"in": size, "kept": size, "dropped": 0, "quarantined": 0, "out": size},
        "rules": {},
        "domains": {},
        "histograms": {},
        "shards": [],
        "seconds": 2.5,
        "cpu_seconds": 2.4,
        "peak_bytes": 150 << 20,
        "digest": "cd" * 16,
        "tokens": sum(counts),
        "tokens_by_domain": dict(by_domain),
    }
    write_json(str(folder / "manifest.json"), told)
    return {
        "step": "tokens",
        "kind": "tokens",
        "folder": folder.name,
        "data": False,
        "group": 5,
        "digest": "cd" * 16,
        "fingerprint": "ab" * 8,
    }


def run(steps: list[dict[str, Any]], seed: int, keep_dropped: float) -> dict[str, Any]:
    recipe = {
        "name": "made-en",
        "seed": seed,
        "keep_dropped": keep_dropped,
        "steps": [{"step": entry["kind"]} for entry in steps if entry["kind"] not in ("read", "tokens")],
    }
    return {
        "format": "gristmill-1",
        "name": "made-en",
        "recipe": recipe,
        "recipe_path": "recipes/made.yaml",
        "limit": None,
        "seed": seed,
        "engine": "local",
        "workers": 2,
        "command": "gristmill run recipes/made.yaml",
        "started": "2026-11-30T10:00:00Z",
        "finished": "2026-11-30T10:01:07Z",
        "seconds": 67.4,
        "versions": {"gristmill": "0.1.0", "pyarrow": "26.0.1"},
        "steps": steps,
    }


def _split(rows: list[Row], judge: Callable[[Row], Drop | None]) -> Made:
    made = Made(kept=[])
    for row in rows:
        drop = judge(row)
        if drop is None:
            made.kept.append(row)
        else:
            made.dropped.append((row, drop))
    return made


def _drop(rule: str, value: float | None = None, threshold: float | None = None, evidence: str | None = None) -> Drop:
    return {"rule": rule, "rules": [rule], "value": value, "threshold": threshold, "evidence": evidence}


def _dropped_row(row: Row, drop: Drop, step: str, keep_dropped: float) -> Row:
    text = row["text"] if int(row["id"][-8:], 16) < keep_dropped * (1 << 32) else None
    return {**{name: row[name] for name in ("id", "source", "url", "copies")}, **drop, "step": step, "text": text}


def _pick(row: Row, one_in: int, salt: str = "") -> bool:
    return _hash(row, salt) % one_in == 0


def _hash(row: Row, salt: str) -> int:
    return xxhash.xxh3_64_intdigest(f"{salt}{row['id']}".encode())


def _table(rows: list[Row], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema=schema)


def _write_parts(folder: Path, table: pa.Table) -> int:
    digest = 0
    for shard in range(SHARDS):
        with ParquetWriter(str(folder / f"part-{shard:05d}-of-{SHARDS:05d}.parquet"), table.schema) as writer:
            for batch in (
                table.take(pa.array(range(shard, table.num_rows, SHARDS), pa.int64())).combine_chunks().to_batches()
            ):
                writer.write(batch)
        digest += writer.digest
    return digest

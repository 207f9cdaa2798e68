"""Small token shards and runs for the exports' tests, and what they hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from shards.digest import digest, to_hex

EOS, BOS = 0, 1
Documents = list[list[int]]


def make_tokens(
    folder: Path,
    shards: list[tuple[str | None, Documents]],
    *,
    dtype: str = "uint16",
    vocab_size: int = 1000,
    append_eos: bool = True,
    prepend_bos: bool = False,
) -> dict[str, Documents]:
    """Write a tokens folder of these shards (a domain and its documents, without EOS and BOS); the documents by domain.

    A document with no ids stays empty: it gets neither EOS nor BOS.
    """
    for name in ("data", "ends", "documents"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text("{}")
    told: list[dict[str, Any]] = []
    by_domain: dict[str, Documents] = {}
    for number, (domain, given) in enumerate(shards):
        documents = [[BOS] * prepend_bos + ids + [EOS] * append_eos if ids else [] for ids in given]
        by_domain.setdefault(domain or "all", []).extend(documents)
        name = f"part-{number:05d}-of-{len(shards):05d}"
        ids = np.array([token for ids in documents for token in ids], np.dtype(dtype).newbyteorder("<"))
        ends = np.cumsum([len(ids) for ids in documents], dtype=np.int64)
        (folder / f"data/{name}.bin").write_bytes(ids.tobytes())
        (folder / f"ends/{name}.bin").write_bytes(ends.astype("<u8").tobytes())
        names = [f"{number:04x}{row:04x}" for row in range(len(documents))]
        counts = [len(ids) for ids in documents]
        columns = {
            "id": pa.array(names, pa.string()),
            "source": pa.array([f"source, {domain}"] * len(documents), pa.string()),
            "domain": pa.array([domain] * len(documents), pa.string()),
            "shard": pa.array([number] * len(documents), pa.int32()),
            "start": pa.array(ends - counts, pa.int64()),
            "token_count": pa.array(counts, pa.int32()),
        }
        pq.write_table(pa.table(columns), folder / f"documents/{name}.parquet")
        lines = "".join(f"{told} {count}\n" for told, count in zip(names, counts, strict=True))
        told.append(
            {
                "name": f"data/{name}.bin",
                "ends_name": f"ends/{name}.bin",
                "documents_name": f"documents/{name}.parquet",
                "domain": domain,
                "documents": len(documents),
                "tokens": len(ids),
                "bytes": ids.nbytes,
                "digest": xxhash.xxh3_128_hexdigest(ids.tobytes()),
                "ends_digest": xxhash.xxh3_128_hexdigest(ends.astype("<u8").tobytes()),
                "documents_digest": xxhash.xxh3_128_hexdigest(lines.encode()),
            }
        )
    manifest = {
        "kind": "tokens",
        "dtype": dtype,
        "tokenizer": {"name": "tokenizer.json", "digest": xxhash.xxh3_128_hexdigest(b"{}"), "vocab_size": vocab_size},
        "policy": {
            "append_eos": append_eos,
            "eos_id": EOS if append_eos else None,
            "prepend_bos": prepend_bos,
            "bos_id": BOS if prepend_bos else None,
        },
        "documents": sum(shard["documents"] for shard in told),
        "tokens": sum(shard["tokens"] for shard in told),
        "domains": {name: {"text_bytes": 0} for name in by_domain},
        "shards": told,
        "ordered_digest": xxhash.xxh3_128_hexdigest("".join(shard["digest"] for shard in told).encode()),
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return by_domain


def make_run(out: Path, parts: list[pa.Table]) -> Path:
    """A run whose last step with data has these parts; the run's folder."""
    folder = out / "02-exact"
    (folder / "data").mkdir(parents=True)
    told = []
    for number, table in enumerate(parts):
        name = f"part-{number:05d}-of-{len(parts):05d}.parquet"
        pq.write_table(table, folder / "data" / name)
        told.append({"name": name, "rows": table.num_rows, "digest": to_hex(digest(table.to_batches()))})
    (folder / "manifest.json").write_text(json.dumps({"kind": "exact", "shards": told, "digest": "d" * 32}))
    steps = [
        {"kind": "read", "folder": "00-read", "data": False},
        {"kind": "exact", "folder": "02-exact", "data": True},
        {"kind": "report", "folder": "03-report", "data": False},
    ]
    (out / "run.json").write_text(json.dumps({"steps": steps}))
    return out


def nonempty(documents: Documents) -> Documents:
    return [ids for ids in documents if ids]

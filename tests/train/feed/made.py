"""Small token shards on disk, without a tokenizer: the files and the manifest as the `tokens:` section writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from shards.store import write_json

EOS, VOCAB = 0, 1000


def make_tokens(
    folder: Path,
    domains: Mapping[str, Sequence[Sequence[int]]],
    *,
    dtype: str = "uint16",
    seed: int = 1,
    **changes: Any,
) -> str:
    """Write token shards and return their folder: `domains` gives each shard's documents as their lengths in tokens.

    Ids are random and below VOCAB; the last of a document is EOS. changes: entries of the manifest to set.
    """
    random = np.random.default_rng(seed)
    lists = [(domain, counts) for domain in sorted(domains) for counts in domains[domain]]
    rows, totals = [], {name: {"documents": 0, "tokens": 0, "text_bytes": 0} for name in domains}
    for number, (domain, counts) in enumerate(lists):
        tokens = random.integers(1, VOCAB, sum(counts)).astype(dtype)
        ends = np.cumsum(counts, dtype="<u8") if len(counts) else np.zeros(0, "<u8")
        tokens[ends[np.asarray(counts, int) > 0].astype(int) - 1] = EOS
        ids = [f"{domain}-{number}-{row}" for row in range(len(counts))]
        part = f"part-{number:05d}-of-{len(lists):05d}"
        row = {
            "name": f"data/{part}.bin",
            "ends_name": f"ends/{part}.bin",
            "documents_name": f"documents/{part}.parquet",
            "domain": domain,
            "documents": len(counts),
            "tokens": len(tokens),
            "bytes": tokens.nbytes,
            "digest": _write(folder / f"data/{part}.bin", tokens.tobytes()),
            "ends_digest": _write(folder / f"ends/{part}.bin", ends.tobytes()),
            "documents_digest": xxhash.xxh3_128_hexdigest(
                "".join(f"{told} {count}\n" for told, count in zip(ids, counts, strict=True)).encode()
            ),
        }
        rows.append(row)
        for key, count in (("documents", len(counts)), ("tokens", len(tokens)), ("text_bytes", 3 * len(tokens))):
            totals[domain][key] += count
        table = {
            "id": pa.array(ids, pa.string()),
            "source": pa.array([domain] * len(ids), pa.string()),
            "domain": pa.array([domain] * len(ids), pa.string()),
            "shard": pa.array([number] * len(ids), pa.int32()),
            "start": pa.array(ends.astype(np.int64) - np.asarray(counts, np.int64), pa.int64()),
            "token_count": pa.array(counts, pa.int32()),
            "language": pa.array(["eng_Latn"] * len(ids), pa.string()),
            "text_bytes": pa.array([3 * count for count in counts], pa.int64()),
        }
        (folder / "documents").mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(table), folder / f"documents/{part}.parquet")
    told = {
        "format": "gristmill-1",
        "kind": "tokens",
        "tokenizer": {"name": "tokenizer.json", "digest": "d" * 32, "vocab_size": VOCAB, "trained": True},
        "dtype": dtype,
        "policy": {
            "append_eos": True,
            "prepend_bos": False,
            "eos_id": EOS,
            "bos_id": None,
            "eos_token": "<|endoftext|>",
        },
        "documents": sum(row["documents"] for row in rows),
        "tokens": sum(row["tokens"] for row in rows),
        "domains": totals,
        "shards": rows,
        "ordered_digest": xxhash.xxh3_128_hexdigest("".join(str(row["digest"]) for row in rows).encode()),
    }
    write_json(str(folder / "manifest.json"), told | changes)
    return str(folder)


def _write(path: Path, data: bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return xxhash.xxh3_128_hexdigest(data)

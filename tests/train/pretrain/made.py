"""Token shards of made texts with their tokenizer; domains differ in their words, so that a model tells them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from shards.store import write_bytes, write_json
from train.tokenise.bpe import train_tokenizer
from train.tokenise.tokenizer import Tokenizer

EOS = "<|endoftext|>"
LANGUAGES = ("eng_Latn", "deu_Latn", None)
WORDS = {
    "prose": "the river runs past old stones and willow trees while children sing of summer",
    "code": "def return if else import self none true x = 0 while ( ) [ ] : lambda",
    "maths": "\u2200 \u03b5 > 0 \u2203 \u03b4 so that sum of squares is even prime modulo \u222b dx",
}


def texts_of(domain: str, documents: int, words: int = 60) -> list[str]:
    """Sentences of a domain's own words; each document also has its number, so that no two are equal."""
    draw = np.random.Generator(np.random.PCG64([3, len(domain), ord(domain[0])]))
    own = WORDS[domain].split()
    counts = draw.integers(words // 4, 2 * words, documents)
    return [f"{at} " + " ".join(own[i] for i in draw.integers(0, len(own), count)) for at, count in enumerate(counts)]


@cache
def tokenizer() -> Tokenizer:
    texts = [text for domain in WORDS for text in texts_of(domain, 20)]
    return train_tokenizer([texts], vocab_size=320, special_tokens=(EOS,))


def make_text_tokens(
    folder: Path,
    domains: Mapping[str, Sequence[str]],
    *,
    shards_a_domain: int = 2,
    languages: bool = True,
    made: Tokenizer | None = None,
) -> str:
    """Write the texts of domains as token shards, each document closed by EOS; the folder. made: its tokenizer."""
    made = made or tokenizer()
    eos = made.id_of(EOS)
    shards, totals = [], {}
    lists = [
        (name, texts[part::shards_a_domain])
        for name, texts in sorted(domains.items())
        for part in range(shards_a_domain)
    ]
    for number, (name, texts) in enumerate(lists):
        ids, offsets = made.encode(list(texts))
        parts = [np.append(ids[a:b], eos) for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
        tokens = np.concatenate([np.zeros(0, np.uint32), *parts]).astype("<u2")
        ends = np.cumsum([len(part) for part in parts], dtype="<u8") if parts else np.zeros(0, "<u8")
        keys = [f"{name}-{number}-{row}" for row in range(len(parts))]
        part = f"part-{number:05d}-of-{len(lists):05d}"
        told = {"domain": name, "documents": len(parts), "tokens": len(tokens), "bytes": tokens.nbytes}
        for key, kind, data in (("", "data", tokens.tobytes()), ("ends_", "ends", ends.tobytes())):
            write_bytes(str(folder / kind / f"{part}.bin"), data)
            told |= {f"{key}name": f"{kind}/{part}.bin", f"{key}digest": xxhash.xxh3_128_hexdigest(data)}
        lines = "".join(f"{key} {len(own)}\n" for key, own in zip(keys, parts, strict=True))
        told |= {
            "documents_name": f"documents/{part}.parquet",
            "documents_digest": xxhash.xxh3_128_hexdigest(lines.encode()),
        }
        table = {
            "id": pa.array(keys, pa.string()),
            "token_count": pa.array([len(own) for own in parts], pa.int32()),
            "text_bytes": pa.array([len(text.encode()) for text in texts], pa.int64()),
        }
        if languages:
            table["language"] = pa.array([LANGUAGES[row % 3] for row in range(len(texts))], pa.string())
        (folder / "documents").mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(table), folder / f"documents/{part}.parquet")
        shards.append(told)
        total = totals.setdefault(name, {"documents": 0, "tokens": 0, "text_bytes": 0})
        total["documents"] += len(parts)
        total["tokens"] += len(tokens)
        total["text_bytes"] += sum(len(text.encode()) for text in texts)
    write_bytes(str(folder / "tokenizer.json"), made.json.encode())
    policy = {"append_eos": True, "prepend_bos": False, "eos_id": eos, "bos_id": None, "eos_token": EOS}
    manifest = {
        "format": "gristmill-1",
        "kind": "tokens",
        "tokenizer": {"name": "tokenizer.json", "digest": made.digest, "vocab_size": made.vocab_size, "trained": True},
        "dtype": "uint16",
        "policy": policy,
        "documents": sum(total["documents"] for total in totals.values()),
        "tokens": sum(total["tokens"] for total in totals.values()),
        "domains": totals,
        "shards": shards,
        "ordered_digest": xxhash.xxh3_128_hexdigest("".join(str(told["digest"]) for told in shards).encode()),
    }
    write_json(str(folder / "manifest.json"), manifest)
    return str(folder)

"""The recipe's `tokens:` section: documents become token shards with a tokenizer, and nothing is guessed afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

import pyarrow as pa
import xxhash
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from shards.step import Shuffle
from shards.store import filesystem, join, names, read_batches, remove, tables, write_bytes
from train.tokenise.bpe import BYTES
from train.tokenise.encode import EncodeTask, KeyTask, SampleTask, TrainTask
from train.tokenise.layout import Layout, last_sampled_slot
from train.tokenise.tokenizer import Tokenizer, TokenizerError, load_tokenizer
from train.tokenise.write import WriteKernel, data_name, documents_name, ends_name

TOKENIZER = "tokenizer.json"
UINT16_IDS = 1 << 16
PART_ORDER = ("order_key", "id", "input_shard", "input_row", "part")

Count = Annotated[int, Field(ge=1)]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Tokens:
    """Train or load a tokenizer, and write token shards with stored document boundaries.

    tokenizer: path or URL of a tokenizer.json, a sentencepiece model or a tiktoken file; None trains a byte-level BPE
        on a sample of the documents.
    pattern: the regular expression of a tiktoken file whose name is not one that tiktoken knows.
    vocab_size: entries to train, special tokens and the 256 bytes among them (32,768: the embedding of a small model
        stays small, and ids fit 16 bits). sample_bytes: text to train on, the first documents in the order of
        hash(seed, id); at most 2^30, as the library counts pairs in 32 bits.
    append_eos, prepend_bos: what stands behind and before each document. eos_token, bos_token: their names.
    special_tokens: further control tokens (chat turns, say): to make room for when training, or behind the ranks of a
        tiktoken file; of any other tokenizer names that it has, and that no text may become.
    dtype: width of the stored ids; auto is uint16 where every id fits, else uint32.
    shard_tokens: tokens a shard, about: documents are spread over shards by ranges of their hash.
    by_domain: a shard holds documents of one domain, so that a mixture can address each domain as one stream of tokens;
        False spreads all domains over all shards in one order.
    """

    name: ClassVar[str] = "tokens"
    version: ClassVar[int] = 3
    reads: ClassVar[frozenset[str]] = frozenset({"id", "source", "domain", "text"})
    adds: ClassVar[pa.Schema] = pa.schema([("token_count", pa.int32())])
    libraries: ClassVar[tuple[str, ...]] = ("tokenizers",)

    tokenizer: str | None = None
    pattern: str | None = Field(default=None, min_length=1)
    vocab_size: int = Field(default=32_768, ge=BYTES + 1, le=1 << 22)
    sample_bytes: int = Field(default=128 << 20, ge=1, le=1 << 30)
    append_eos: bool = True
    prepend_bos: bool = False
    eos_token: str = Field(default="<|endoftext|>", min_length=1)
    bos_token: str = Field(default="<|begin_of_text|>", min_length=1)
    special_tokens: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    dtype: Literal["auto", "uint16", "uint32"] = "auto"
    shard_tokens: int = Field(default=100_000_000, ge=1)
    by_domain: bool = True

    @model_validator(mode="after")
    def _whole(self) -> Tokens:
        if self.tokenizer is not None and (self.vocab_size, self.sample_bytes) != (32_768, 128 << 20):
            raise ValueError("vocab_size and sample_bytes are for training; leave them or tokenizer out")
        if self.tokenizer is None and self.pattern is not None:
            raise ValueError("pattern is of a tiktoken file; name it as tokenizer, or leave pattern out")
        if self.tokenizer is None and self.vocab_size < BYTES + len(self._controls):
            raise ValueError(f"vocab_size: {self.vocab_size} has no room for 256 bytes and the special tokens")
        return self

    def files(self) -> tuple[str, ...]:
        return () if self.tokenizer is None else (self.tokenizer,)

    @property
    def _controls(self) -> tuple[str, ...]:
        """EOS and BOS where they are used, then the other special tokens, each once."""
        used = [self.eos_token] * self.append_eos + [self.bos_token] * self.prepend_bos
        return tuple(dict.fromkeys([*used, *self.special_tokens]))

    def run(self, shards: Sequence[str], shuffle: Shuffle, work: str, out: str, seed: int) -> dict[str, Any]:
        """Write out/tokenizer.json, out/data, out/ends and out/documents; return what the manifest says of them.

        shards: Parquet files of documents (id, source, domain, text, and language where it is known), in any order.
        work: a folder for what lies between; what is finished there is not done again. The same documents, settings and
        seed give the same bytes, whatever the shards, workers or engine. Memory: the engine's setting, and a batch of
        texts a worker.
        Raises TokenizerError for a tokenizer that cannot do this.
        """
        made = self._tokenizer(shards, shuffle, work, seed)
        url = join(out, TOKENIZER)
        data = made.json.encode()
        write_bytes(url, data)
        dtype = self._dtype(made)
        eos = made.id_of(self.eos_token) if self.append_eos else None
        bos = made.id_of(self.bos_token) if self.prepend_bos else None
        task = EncodeTask(
            tokenizer=url,
            digest=xxhash.xxh3_128_hexdigest(data),
            controls=self._controls,
            dtype=dtype,
            bos=bos,
            eos=eos,
            seed=seed,
        )
        encoded = shuffle.map(task, shards, join(work, "encoded"))
        layout = Layout.of(shuffle, encoded, work, shard_tokens=self.shard_tokens, by_domain=self.by_domain)
        kernel = WriteKernel(out=out, shards=layout.shards, width=4 if dtype == "uint32" else 2)
        written = self._write(shuffle, layout, kernel, encoded, work)
        policy = {
            "append_eos": self.append_eos,
            "prepend_bos": self.prepend_bos,
            "eos_token": self.eos_token if self.append_eos else None,
            "bos_token": self.bos_token if self.prepend_bos else None,
            "eos_id": eos,
            "bos_id": bos,
            "special_tokens_in_text": "encoded as text",
        }
        return {
            "tokenizer": {
                "name": TOKENIZER,
                "digest": made.digest,
                "vocab_size": made.vocab_size,
                "trained": self.tokenizer is None,
            },
            "dtype": dtype,
            "byte_order": "little",
            "policy": policy,
            "order": "domain, then xxh3_64(id, seed), then id" if self.by_domain else "xxh3_64(id, seed), then id",
            "seed": seed,
            **layout.totals(),
            "shards": written,
            "ordered_digest": xxhash.xxh3_128_hexdigest("".join(shard["digest"] for shard in written).encode()),
        }

    def _tokenizer(self, shards: Sequence[str], shuffle: Shuffle, work: str, seed: int) -> Tokenizer:
        if self.tokenizer is not None:
            added = self.special_tokens
            loaded = load_tokenizer(self.tokenizer, self._controls, pattern=self.pattern, special_tokens=added)
            for token in self._controls:
                loaded.id_of(token)  # here, not in a worker
            return loaded
        keys = shuffle.map(KeyTask(seed=seed), shards, join(work, "keys"))
        last = last_sampled_slot(shuffle, keys, self.sample_bytes)
        sample = shuffle.map(SampleTask(seed=seed, last_slot=last), shards, join(work, "sample"))
        task = TrainTask(vocab_size=self.vocab_size, special_tokens=self._controls)
        trained = shuffle.map(task, [sample], join(work, "tokenizer"))
        told = [row["tokenizer"] for row in _rows(trained)]
        return Tokenizer(told[0], self._controls)

    def _dtype(self, made: Tokenizer) -> str:
        fits = made.vocab_size <= UINT16_IDS
        if self.dtype == "uint16" and not fits:
            raise TokenizerError(f"dtype: uint16 cannot hold id {made.vocab_size - 1}; set dtype: auto or uint32")
        return ("uint16" if fits else "uint32") if self.dtype == "auto" else self.dtype

    def _write(
        self, shuffle: Shuffle, layout: Layout, kernel: WriteKernel, encoded: str, work: str
    ) -> list[dict[str, Any]]:
        """Write the shards, those that no document fell into too; a dict a shard, in order. No other part stays."""
        written = join(work, "written")
        shuffle.stream(
            layout.sql(), kernel, written, key="shard", order=PART_ORDER, encoded=encoded, layout=layout.table
        )
        rows = {row["shard"]: row for row in _rows(written)}
        for number in set(range(layout.shards)) - set(rows):
            rows[number] = kernel.empty(number).to_pylist()[0]
        layout.check(list(rows.values()))
        told = []
        for number, domain in enumerate(layout.owners()):
            row = {key: value for key, value in rows[number].items() if key != "shard"}
            data = data_name(number, layout.shards)
            others = {
                "ends_name": ends_name(number, layout.shards),
                "documents_name": documents_name(number, layout.shards),
            }
            files, path = filesystem(join(kernel.out, data))
            if files.size(path) != row["bytes"]:
                raise RuntimeError(f"{path}: not the {row['bytes']} bytes that were written")
            told.append({"name": data, **others, "domain": domain, **row})
        _remove_others(kernel.out, {shard[key] for shard in told for key in ("name", "ends_name", "documents_name")})
        return told


def _rows(table: str) -> Iterator[dict[str, Any]]:
    """The rows of a small table."""
    return (row for path in tables(table) for batch in read_batches(path) for row in batch.to_pylist())


def _remove_others(out: str, wanted: set[str]) -> None:
    """Remove the parts of an earlier run, which may have had another number of shards."""
    for folder in ("data", "ends", "documents"):
        for found in names(join(out, folder)):
            if found.startswith("part-") and f"{folder}/{found}" not in wanted:
                remove(join(out, folder, found))

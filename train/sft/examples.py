"""Examples on disk, with the account of every row and token that went in.

    OUT/examples/tokens.bin          uint32 ids of all examples, one after another
    OUT/examples/trained.bin         uint8 each: 1 where predicting this token has a loss
    OUT/examples/examples.parquet    a row an example: id, location, answers, tokens, trained, cropped, held_out
    OUT/examples/manifest.json       written last: the account, and what was verified

rows in = trained + refused + dropped; tokens encoded = trained + context + cropped + dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shards.store import ParquetWriter, atomic, filesystem, join, read_batches, read_json
from train.sft.encoding import Encoded
from train.sft.refusals import Refusal, Refused
from train.sft.rows import Raw
from train.sft.turns import Example

FORMAT = "gristmill-sft-1"
EXAMPLES = pa.schema(
    [
        ("id", pa.string()),
        ("location", pa.string()),
        ("answers", pa.list_(pa.int32())),
        ("tokens", pa.int64()),
        ("trained", pa.int64()),
        ("cropped", pa.int64()),
        ("held_out", pa.bool_()),
    ]
)
ROW_COUNTS = ("in", "trained", "refused", "dropped", "split")
TOKEN_COUNTS = ("encoded", "trained", "context", "cropped", "cropped_trained", "dropped")
ANSWER_COUNTS = ("whole", "cut_or_lost", "trimmed")
EXAMPLE_COUNTS = ("kept", "cut", "dropped_no_labels", "dropped_too_long", "control_names_as_text")


@dataclass(frozen=True, kw_only=True, eq=False)
class Examples:
    """Encoded examples, mapped. tokens uint32[n], trained uint8[n]; example e is [starts[e], starts[e + 1])."""

    tokens: npt.NDArray[np.uint32]
    trained: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    held_out: npt.NDArray[np.bool_]
    manifest: dict[str, Any]

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        return np.diff(self.starts)


def open_examples(folder: str) -> Examples:
    """The examples of OUT/examples. Raises FileNotFoundError where they are not finished."""
    manifest = read_json(join(folder, "manifest.json"))
    if manifest is None:
        raise FileNotFoundError(f"{folder}: its manifest.json is missing or torn; prepare the examples again")
    columns = ["tokens", "held_out"]
    batches = list(read_batches(join(folder, "examples.parquet"), columns, batch_rows=1 << 16))
    table = pa.Table.from_batches(batches, pa.schema([EXAMPLES.field(name) for name in columns]))
    starts = np.zeros(len(table) + 1, np.int64)
    np.cumsum(table.column("tokens").to_numpy(), out=starts[1:])
    return Examples(
        tokens=_mapped(join(folder, "tokens.bin"), np.dtype("<u4")),
        trained=_mapped(join(folder, "trained.bin"), np.dtype("u1")),
        starts=starts,
        held_out=np.asarray(table.column("held_out").to_numpy(zero_copy_only=False), np.bool_),
        manifest=manifest,
    )


def _mapped(path: str, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    files, name = filesystem(path)
    if "file" in files.protocol and files.size(name):  # nothing cannot be mapped
        return np.memmap(name, dtype, "r")
    return np.frombuffer(files.cat_file(name), dtype)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A row with its examples and their ids, or its refusal."""

    raw: Raw
    held_out: bool
    made: Sequence[tuple[Example, Encoded]] = ()
    refused: Refused | None = None


@dataclass(kw_only=True)
class Account:
    """What became of rows, examples, answers and tokens. ends: the last tokens of whole answers, by id."""

    rows: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    examples: Counter[str] = field(default_factory=Counter)
    ends: Counter[int] = field(default_factory=Counter)
    refusals: list[Refusal] = field(default_factory=list)

    def check(self) -> None:
        """Raise AssertionError for a row or token that is neither trained on nor explained: a bug."""
        rows, tokens = self.rows, self.tokens
        assert rows["in"] == rows["trained"] + rows["refused"] + rows["dropped"], dict(rows)
        parts = tokens["trained"] + tokens["context"] + tokens["cropped"] + tokens["dropped"]
        assert tokens["encoded"] == parts, dict(tokens)

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": {key: self.rows[key] for key in ROW_COUNTS},
            "refused": dict(sorted(Counter(refusal.reason for refusal in self.refusals).items())),
            "examples": {key: self.examples[key] for key in EXAMPLE_COUNTS},
            "tokens": {key: self.tokens[key] for key in TOKEN_COUNTS},
            "answers": {key: self.answers[key] for key in ANSWER_COUNTS},
        }


@dataclass(kw_only=True)
class ExampleWriter:
    """Cuts examples to length, writes them, and counts. most_tokens: of an example; truncate: as in Chat."""

    most_tokens: int
    truncate: Literal["refuse", "right", "drop"]
    account: Account = field(default_factory=Account)
    _tokens: IO[bytes] | None = None
    _trained: IO[bytes] | None = None
    _table: ParquetWriter | None = None

    @contextmanager
    def writing(self, folder: str) -> Iterator[ExampleWriter]:
        """The files get their names when all of it is written; the manifest is the caller's to write, last."""
        with ExitStack() as stack:
            self._tokens = stack.enter_context(atomic(join(folder, "tokens.bin")))
            self._trained = stack.enter_context(atomic(join(folder, "trained.bin")))
            self._table = stack.enter_context(ParquetWriter(join(folder, "examples.parquet"), EXAMPLES))
            yield self

    def write(self, outcome: Outcome) -> None:
        """Settle one row."""
        refused = outcome.refused
        longest = max((len(encoded.ids) for _, encoded in outcome.made), default=0)
        if refused is None and longest > self.most_tokens and self.truncate == "refuse":
            refused = Refused("too_long", f"{longest} tokens, more than sequence_tokens + 1 = {self.most_tokens}")
        self.account.rows["in"] += 1
        if refused is not None:
            raw, account = outcome.raw, self.account
            account.rows["refused"] += 1
            account.refusals.append(
                Refusal(id=raw.id, location=raw.location, reason=refused.reason, detail=refused.detail)
            )
            return
        kept = [row for pair in outcome.made if (row := self._example(outcome, *pair)) is not None]
        self.account.rows["trained" if kept else "dropped"] += 1
        self.account.rows["split"] += len(outcome.made) > 1
        if kept and self._table is not None:
            columns = zip(zip(*kept, strict=True), EXAMPLES, strict=True)
            arrays = [pa.array(column, kind.type) for column, kind in columns]
            self._table.write(pa.RecordBatch.from_arrays(arrays, schema=EXAMPLES))

    def _example(self, outcome: Outcome, example: Example, encoded: Encoded) -> list[Any] | None:
        """Write an example as far as it stays; its row of the table, or None for one that is dropped."""
        whole = len(encoded.ids)
        length = min(whole, self.most_tokens)
        trained = encoded.trained[:length]
        account, count = self.account, int(trained.sum())
        account.tokens["encoded"] += whole
        if not count or (length < whole and self.truncate == "drop"):
            account.examples["dropped_too_long" if count else "dropped_no_labels"] += 1
            account.tokens["dropped"] += whole
            return None
        account.examples.update(kept=1, cut=length < whole, control_names_as_text=bool(example.literal))
        account.tokens.update(
            trained=count,
            context=length - count,
            cropped=whole - length,
            cropped_trained=int(encoded.trained[length:].sum()),
        )
        ends = np.flatnonzero(encoded.trained & ~np.append(encoded.trained[1:], False))
        here = ends < length
        account.answers.update(whole=int(here.sum()), cut_or_lost=int((~here).sum()), trimmed=example.trimmed)
        account.ends.update(encoded.ids[ends[here]].tolist())
        if self._tokens is not None and self._trained is not None:
            self._tokens.write(encoded.ids[:length].astype("<u4").tobytes())
            self._trained.write(trained.astype("u1").tobytes())
        raw = outcome.raw
        return [raw.id, raw.location, list(example.answers), length, count, whole - length, outcome.held_out]

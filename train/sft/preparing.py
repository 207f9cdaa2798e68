"""From rows to examples on disk: read, check, render, encode, verify; once for the same rows and settings.

Refused rows go to OUT/quarantine/part-00000-of-00001.parquet: id, location, reason and where; never content.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import xxhash

from shards.schema import QUARANTINE
from shards.store import ParquetWriter, filesystem, join, read_json, remove, write_json
from train.sft.encoding import ChatTokenizer
from train.sft.examples import FORMAT, Examples, ExampleWriter, Outcome, open_examples
from train.sft.refusals import Refusal, Refused, SftError, check_share
from train.sft.rows import Raw, conversation, files_of, read_rows
from train.sft.settings import Chat
from train.sft.templates import ChatTemplate
from train.sft.turns import Example, examples

VERSION = 1  # of how rows become examples: raised when the answers change
GROUP_ROWS = 256
QUARANTINED = "quarantine/part-00000-of-00001.parquet"


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Files of rows. held_out: whose rows are all held out; share: of the others' rows, by hash(seed, id)."""

    data: tuple[str, ...]
    held_out: tuple[str, ...] = ()
    share: float = 0.0
    seed: int = 0

    def rows(self) -> Iterator[tuple[Raw, bool]]:
        """Each row, and whether it is held out: one that comes twice falls on one side."""
        for raw in read_rows(self.data):
            told = xxhash.xxh3_64_intdigest(f"{self.seed}\0held out\0{raw.id}".encode("utf-8", "replace"))
            yield raw, told < self.share * 2**64
        yield from ((raw, True) for raw in read_rows(self.held_out))

    def digest(self) -> str:
        """Of the names and bytes of all files, in order, and of the split."""
        digest = xxhash.xxh3_128(json.dumps([self.share, self.seed]).encode())
        for sources in (self.data, self.held_out):
            digest.update(b"\0")
            for path in files_of(sources):
                files, name = filesystem(path)
                digest.update(path.rsplit("/", 1)[-1].encode() + b"\0")
                with files.open(name, "rb") as stream:
                    while chunk := stream.read(1 << 20):
                        digest.update(chunk)
        return str(digest.hexdigest())


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What turns rows into ids and masks."""

    chat: Chat
    tokenizer: ChatTokenizer
    template: ChatTemplate | None

    @classmethod
    def of(cls, chat: Chat, tokenizer: ChatTokenizer, model_folder: str) -> Reading:
        """With the template that the settings name. Plain text needs none, so there it may be missing."""
        try:
            template = tokenizer.template(chat, model_folder)
        except SftError:
            if chat.text_rows == "chat" or chat.template is not None:
                raise
            template = None
        return cls(chat=chat, tokenizer=tokenizer, template=template)

    @property
    def digest(self) -> str:
        told = [VERSION, repr(self.chat), self.tokenizer.digest, self.template.digest if self.template else None]
        return str(xxhash.xxh3_128_hexdigest(json.dumps(told).encode()))

    def outcomes(self, group: Sequence[tuple[Raw, bool]]) -> Iterator[Outcome]:
        """What becomes of each row of a group, in order."""
        rendered = [self._rendered(raw) for raw, _ in group]
        flat = [example for made in rendered if not isinstance(made, Refused) for example in made]
        encoded = iter(self.tokenizer.encode(flat, self.chat))
        for (raw, held_out), made in zip(group, rendered, strict=True):
            if isinstance(made, Refused):
                yield Outcome(raw=raw, held_out=held_out, refused=made)
                continue
            pairs, refused = [], None
            for example in made:
                found = next(encoded)
                if isinstance(found, Refused):
                    refused = refused or found
                else:
                    pairs.append((example, found))
            yield Outcome(raw=raw, held_out=held_out, made=() if refused else pairs, refused=refused)

    def _rendered(self, raw: Raw) -> list[Example] | Refused:
        try:
            return examples(conversation(raw, self.chat.text_rows), self.template, self.chat)
        except Refused as refused:
            return refused
        except RecursionError:
            return Refused("not_a_conversation", "the row is nested too deep")


def prepare(sources: Sources, reading: Reading, out: str, *, most_tokens: int) -> Examples:
    """Encode all rows to out/examples, or open what is there when nothing that shapes it has changed.

    most_tokens: of an example; what is longer goes by chat.truncate. Raises SftError when more than chat.max_refused of
    the rows are refused (their quarantine is written all the same), or nothing is left to train on.
    """
    folder = join(out, "examples")
    told = f"{sources.digest()} {reading.digest} {most_tokens}"
    fingerprint = xxhash.xxh3_128_hexdigest(told.encode())
    if (read_json(join(folder, "manifest.json")) or {}).get("fingerprint") != fingerprint:
        remove(join(folder, "manifest.json"))  # or a kill could leave it beside other examples
        writer = ExampleWriter(most_tokens=most_tokens, truncate=reading.chat.truncate)
        account = writer.account
        with writer.writing(folder):
            rows = sources.rows()
            while group := list(islice(rows, GROUP_ROWS)):
                for outcome in reading.outcomes(group):
                    writer.write(outcome)
            _quarantine(account.refusals, out)
            check_share(account.refusals, account.rows["in"], reading.chat.max_refused)
            account.check()
        ends = {reading.tokenizer.name_of(number): count for number, count in sorted(account.ends.items())}
        manifest = {"format": FORMAT, "fingerprint": fingerprint, **account.to_json()}
        write_json(join(folder, "manifest.json"), {**manifest, "ends": ends, "end_ids": sorted(account.ends)})
    found = open_examples(folder)
    if found.held_out.all():
        raise SftError(f"data: no example to train on in {found.manifest['rows']['in']} rows; see {folder}")
    return found


def _quarantine(refusals: Sequence[Refusal], out: str) -> None:
    columns: dict[str, list[Any]] = {
        "id": [refusal.id for refusal in refusals],
        "location": [refusal.location for refusal in refusals],
        "step": ["sft"] * len(refusals),
        "error": [refusal.reason for refusal in refusals],
        "message": [refusal.detail for refusal in refusals],
    }
    arrays = [pa.array(columns.get(kind.name, [None] * len(refusals)), kind.type) for kind in QUARANTINE]
    with ParquetWriter(join(out, QUARANTINED), QUARANTINE) as writer:
        writer.write(pa.RecordBatch.from_arrays(arrays, schema=QUARANTINE))

"""What one `sources:` entry of a recipe says, and which columns its documents have."""

from __future__ import annotations

from dataclasses import field as plain_field
from typing import Annotated, Literal

import pyarrow as pa
from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from shards.schema import DOCUMENT, MESSAGE

Format = Literal["warc", "wet", "arc", "html", "jsonl", "parquet", "csv", "text", "markdown", "code", "messages"]

TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "list<string>": pa.list_(pa.string()),
    "list<int64>": pa.list_(pa.int64()),
    "list<float64>": pa.list_(pa.float64()),
}

WARC_FORMATS = frozenset({"warc", "wet", "arc"})
TABULAR_FORMATS = frozenset({"jsonl", "parquet", "csv", "messages"})


class InputError(ValueError):
    """Inputs that a run cannot start with: one line that names the place and the mend."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Source:
    """One entry of `sources:`.

    name: what the column `source` holds.
    format: how the bytes are read; compression (gz, zst, none) is told from the bytes.
    paths: globs, files or folders on any fsspec URL; relative ones are resolved before they come here.
    domain: what the column `domain` holds (the mixing domain); default: the name.
    text_field, id_field, url_field, date_field: where a row of a table (jsonl, parquet, csv, messages) has its text,
        the source's own id, its address and its date. An absent id, url or date is null; an absent text is quarantined.
    messages_field: where a row of format `messages` has its list of {role, content}.
    columns: {name: type} of further columns to carry, null where missing. Types: see TYPES. A value that cannot be
        cast quarantines its row.
    keep_truncated: keep records that the crawler cut (WARC-Truncated); they are dropped as `truncated` otherwise.
    max_record_bytes: a record, row or file above this is quarantined unread (64 MiB: about a thousand times a page).
    """

    name: Annotated[str, Field(min_length=1)]
    format: Format
    paths: Annotated[tuple[str, ...], Field(min_length=1)]
    domain: str = ""
    text_field: str = "text"
    id_field: str = "id"
    url_field: str = "url"
    date_field: str = "date"
    messages_field: str = "messages"
    columns: dict[str, str] = plain_field(default_factory=dict)
    keep_truncated: bool = False
    max_record_bytes: Annotated[int, Field(ge=1 << 10, le=1 << 31)] = 64 << 20

    @model_validator(mode="after")
    def _columns_are_known(self) -> Source:
        reserved = {*DOCUMENT.names, "messages"}
        for column, kind in self.columns.items():
            if kind not in TYPES:
                raise ValueError(f"columns.{column}: no type {kind!r}; types are {', '.join(TYPES)}")
            if column in reserved or column.startswith("_"):
                raise ValueError(f"columns.{column}: the name is taken by the document itself; choose another")
        return self

    @property
    def mixing_domain(self) -> str:
        return self.domain or self.name

    def extra(self) -> pa.Schema:
        """The carried columns, typed."""
        return pa.schema([pa.field(column, TYPES[kind]) for column, kind in self.columns.items()])

    def schema(self) -> pa.Schema:
        """The columns that this source's documents have: DOCUMENT, messages for chat rows, the carried ones."""
        fields = list(DOCUMENT)
        if self.format == "messages":
            fields.append(pa.field("messages", pa.list_(MESSAGE)))
        return pa.schema([*fields, *self.extra()])

"""The documents of a run as an export reads them: Parquet parts in order, each checked against its manifest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shards.digest import MODULUS, row_hashes, to_hex
from shards.store import filesystem, join, read_batches, read_json
from train.exports.account import Account
from train.exports.folder import ExportError

NO_DOMAIN = "(none)"
OTHER_DOMAINS = "rows of other domains"


@dataclass(frozen=True, kw_only=True)
class Rows:
    """A step's kept rows. parts: name, rows and digest of each file below its data/, as the manifest has them."""

    folder: str
    parts: tuple[dict[str, Any], ...]
    schema: pa.Schema
    domains: tuple[str, ...] | None
    digest: str | None
    found: set[str] = field(default_factory=set)  # domains of the rows that were read

    @classmethod
    def open(cls, out: str, *, domains: Sequence[str] | None) -> Rows:
        """The rows of a step's folder, or of a run's last step that kept its data. Raises ExportError."""
        folder, told = _find(out)
        parts = tuple(sorted(told["shards"], key=lambda part: str(part["name"])))
        if not parts:
            raise ExportError(f"{folder}: it has no rows; export a step that kept some")
        schema = _schema(join(folder, "data", parts[0]["name"]))
        if domains is not None and "domain" not in schema.names:
            raise ExportError(f"{folder}: its rows have no domain; leave domains out")
        chosen = None if domains is None else tuple(sorted(set(domains)))
        return cls(folder=folder, parts=parts, schema=schema, domains=chosen, digest=told.get("digest"))

    @property
    def rows(self) -> int:
        return sum(part["rows"] for part in self.parts)

    def batches(self, part: dict[str, Any], account: Account) -> Iterator[pa.RecordBatch]:
        """A part's rows of the chosen domains; the others are counted. Raises ExportError where they changed."""
        url = join(self.folder, "data", part["name"])
        rows, digest = 0, 0
        try:
            for batch in read_batches(url):
                rows += batch.num_rows
                digest += sum(row_hashes(batch))
                if self.domains is not None:
                    self.found.update(told or NO_DOMAIN for told in pc.unique(batch.column("domain")).to_pylist())
                    chosen = batch.filter(pc.is_in(batch.column("domain"), pa.array(self.domains, pa.string())))
                    account.leave_out(OTHER_DOMAINS, documents=batch.num_rows - chosen.num_rows)
                    batch = chosen
                yield batch
        except (OSError, pa.ArrowException) as error:
            raise ExportError(f"{url}: cannot be read ({type(error).__name__}); run the recipe again") from error
        if (rows, to_hex(digest % MODULUS)) != (part["rows"], part["digest"]):
            raise ExportError(f"{url}: its rows are not those that its manifest tells of; run the recipe again")


def check_domains(rows: Rows) -> None:
    """Raise ExportError where a domain that was asked for has no row; all rows have been read."""
    unknown = sorted(set(rows.domains or ()) - rows.found)
    if unknown:
        told = ", ".join(map(repr, unknown))
        raise ExportError(f"domains: no domain {told}; there are {', '.join(sorted(rows.found))}")


def _schema(url: str) -> pa.Schema:
    files, path = filesystem(url)
    try:
        with files.open(path, "rb") as source:
            return pq.read_schema(source)
    except (OSError, pa.ArrowException) as error:
        raise ExportError(f"{url}: cannot be read ({type(error).__name__}); run the recipe again") from error


def _find(out: str) -> tuple[str, dict[str, Any]]:
    told = read_json(join(out, "manifest.json"))
    if told is not None and told.get("kind") != "tokens" and "shards" in told:
        return out, told
    run = read_json(join(out, "run.json")) or {}
    for step in reversed(run.get("steps") or []):
        folder = join(out, step["folder"])
        if step.get("data") and step.get("kind") != "tokens":
            told = read_json(join(folder, "manifest.json"))
            if told is None or "shards" not in told:
                raise ExportError(f"{folder}: its manifest.json is missing or torn; run the recipe again: it mends it")
            return folder, told
    raise ExportError(
        f"{out}: no documents; it would be a run's folder (with run.json and a step that kept its data) or the folder "
        "of such a step"
    )

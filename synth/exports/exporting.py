"""From samples to a dataset that others train on: chosen, under terms, proved, written; every row accounted for.

    DESTINATION/data/part-00000.parquet ...   rows of one format, or .jsonl
    DESTINATION/refused.parquet               id and reason of each row that was taken and does not stand above; no text
    DESTINATION/README.md                     the dataset's card, with measured figures
    DESTINATION/manifest.json                 written last: what is without it is no dataset

It fails closed: more refused rows than `max_refused`, or rows in conflict with the policy, and nothing is left there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from shards.store import ParquetWriter, exists, filesystem, join, remove, write_bytes, write_json
from synth.errors import SynthError
from synth.exports.account import SHOWN, Account, fail_closed
from synth.exports.card import card
from synth.exports.columns import RefusedRowError, check_text
from synth.exports.formats import TRAVELLING, Format, Values
from synth.exports.licences import Licences, RowTerms
from synth.exports.parts import Parts
from synth.exports.settings import Export
from synth.items import Outcome
from synth.rows import Row

FORMAT: Final = "gristmill-synth-export-1"
GROUP_ROWS: Final = 256
REFUSED = pa.schema([("id", pa.string()), ("reason", pa.string())])


def export(rows: Iterable[Row], destination: str, made: Export, facts: Mapping[str, Any] | None = None) -> Account:
    """Write the accepted samples that the format takes to a new folder.

    rows: in the order that they are to be written. facts: figures of the run for the card (acceptance, verifiers' error
    rates, costs). Raises SynthError where the destination holds something, or the export fails closed.
    """
    if exists(destination) and _holds_something(destination):
        raise SynthError(f"{destination}: is there already; name a new folder, or remove it")
    wanted, licences = made.format(), Licences(policy=made.licences, terms=made.terms)
    account = Account()
    try:
        with ExitStack() as files, ParquetWriter(join(destination, "refused.parquet"), REFUSED) as refused:
            parts = Parts(destination, _schema(wanted), made, files)
            stream = iter(rows)
            while group := list(islice(stream, GROUP_ROWS)):
                _write_group(group, wanted, licences, parts, refused, account)
            parts.close()
        account.check()
        fail_closed(account, made)
    except BaseException:
        remove(destination)
        raise
    told = {
        "format": FORMAT,
        "to": made.to,
        "files": parts.names,
        "proved": made.model is not None,
        **account.to_json(),
    }
    write_bytes(join(destination, "README.md"), card(made.to, told, dict(facts or {})).encode())
    write_json(join(destination, "manifest.json"), {**told, "facts": dict(facts or {})})
    return account


def _write_group(  # noqa: PLR0917 - one call, each of them a thing of its own
    group: Sequence[Row], wanted: Format, licences: Licences, parts: Parts, refused: ParquetWriter, account: Account
) -> None:
    account.rows_in += len(group)
    taken: list[tuple[Row, RowTerms]] = []
    lost: list[tuple[str, str]] = []
    for row in group:
        why = _left_out(row, wanted, parts.tasks) or _repeats(row, wanted, account)
        if why:
            account.left_out[why] += 1
            continue
        terms = licences.of(row.item.licence, row.teachers)
        if terms.blocked:
            account.blocked[terms.blocked] += 1
            lost.append((row.id.encode("utf-8", "replace").decode(), terms.blocked))
        else:
            taken.append((row, terms))
    ready: list[Values] = []
    for (row, terms), told in zip(taken, wanted.convert([row for row, _ in taken]), strict=True):
        wrong = told if isinstance(told, RefusedRowError) else _unwritable(row)
        if wrong is not None:
            account.refused[wrong.reason] += 1
            lost.append((row.id.encode("utf-8", "replace").decode(), wrong.reason))
        elif not isinstance(told, RefusedRowError):
            ready.append({**told, **_travelling(row, terms, told, account)})
    for name, why in lost:
        if len(own := account.first.setdefault(why, [])) < SHOWN:
            own.append(name)
    refused.write(pa.RecordBatch.from_pylist([{"id": name, "reason": why} for name, why in lost], REFUSED))
    parts.write(ready, account)


def _left_out(row: Row, wanted: Format, tasks: tuple[str, ...]) -> str:
    if tasks and row.task not in tasks:
        return "task.not_asked"
    if row.sample.outcome is not Outcome.ACCEPTED:
        return row.sample.reason or str(row.sample.outcome)
    if row.sample.kind not in wanted.takes:
        return f"kind.{row.sample.kind}"
    return "item.no_gold" if wanted.needs_gold and (row.item.gold is None or not row.item.verifier) else ""


def _unwritable(row: Row) -> RefusedRowError | None:
    item = row.item
    try:
        check_text(row.id, item.domain, item.skill, item.language, item.source, item.licence)
    except RefusedRowError as refused:
        return refused
    return None


def _repeats(row: Row, wanted: Format, account: Account) -> str:
    """Of a format with one row an item: samples of an item follow each other."""
    item = f"{row.task}/{row.item.id}"
    before, account.last_item = account.last_item, item
    return "format.one_an_item" if wanted.one_an_item and item == before else ""


def _travelling(row: Row, terms: RowTerms, told: Values, account: Account) -> Values:
    account.licences[terms.licence or "unknown"] += 1
    account.teachers.update(terms.teachers)
    account.attributions.update(terms.attributions)
    account.tokens += len(told.get("input_ids", ())) or row.sample.tokens
    account.trained_tokens += int(sum(told["loss_mask"])) if "loss_mask" in told else row.sample.tokens
    item, sample = row.item, row.sample
    return {
        "id": row.id, "task": row.task, "item": item.id, "domain": item.domain, "skill": item.skill,
        "language": item.language, "source": item.source, "licence": terms.licence, "teachers": list(terms.teachers),
        "attributions": list(terms.attributions), "requests": list(sample.keys), "verdict": sample.verdict,
        "tokens": sample.tokens,
    }  # fmt: skip


def _schema(wanted: Format) -> pa.Schema:
    return pa.schema([*wanted.columns, *TRAVELLING])


def _holds_something(destination: str) -> bool:
    files, path = filesystem(destination)
    return not files.isdir(path) or bool(files.ls(path, detail=False))

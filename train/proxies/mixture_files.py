"""Files of mixtures: CSV and Parquet (a row a mixture), YAML and JSON (a list of {domain: weight} or a map by name)."""

from __future__ import annotations

import csv
import json
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa
import yaml

from shards.store import filesystem
from train.proxies.settings import ProxyError

NAMES: Final = "mixture"  # the column of names
KINDS: Final = ("csv", "parquet", "yaml", "yml", "json")
Listed = tuple[str, str | None, Mapping[str, Any]]  # where, name, weights


def listed(where: str, given: Any) -> Iterable[Listed]:
    """The mixtures of a list of maps or a map of maps. Raises ProxyError for anything else."""
    pairs = (
        given.items() if isinstance(given, Mapping) else enumerate(given) if isinstance(given, list | tuple) else None
    )
    if pairs is None:
        raise ProxyError(f"{where}: is neither a list of {{domain: weight}} nor a map of them by name")
    for key, weights in pairs:
        place = f"{where}.{key}" if isinstance(given, Mapping) else f"{where}[{key}]"
        if not isinstance(weights, Mapping):
            raise ProxyError(f"{place}: is not a map {{domain: weight}}")
        yield place, str(key) if isinstance(given, Mapping) else None, weights


def read(url: str) -> list[Listed]:
    """The mixtures of a file, by the end of its name. Raises ProxyError where it cannot be read as that."""
    kind = url.rsplit(".", 1)[-1].lower()
    if kind not in KINDS:
        raise ProxyError(f"mixtures_file: {url} ends in none of .csv, .parquet, .yaml, .json")
    files, path = filesystem(url)
    try:
        with files.open(path, "rb") as file:
            data: bytes = file.read()
        if kind == "csv":
            return list(_lines(url, data.decode("utf-8-sig")))
        if kind == "parquet":
            return list(_rows(url, data))
        return list(listed(url, _json(data) if kind == "json" else yaml.load(data, Loader=_Strict)))
    except FileNotFoundError:
        raise ProxyError(f"mixtures_file: {url} does not exist") from None
    except OSError as error:
        raise ProxyError(f"mixtures_file: {url}: {(error.strerror or type(error).__name__).lower()}") from None
    except (ValueError, RecursionError, csv.Error, pa.ArrowException, yaml.YAMLError) as error:
        if isinstance(error, ProxyError):
            raise
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ProxyError(f"{url}: cannot be read as {kind}: {told}") from None


def _lines(url: str, text: str) -> Iterable[Listed]:
    """Names stay the text that they are; weights become numbers."""
    rows = csv.reader(text.splitlines(), strict=True)
    header = next(rows, [])
    if len(set(header)) != len(header):
        raise ProxyError(f"{url}: a column stands twice; name each domain once")
    for number, row in enumerate(row for row in rows if row):
        where = f"{url} row {number}"
        if len(row) != len(header):
            raise ProxyError(f"{where}: {len(row)} values, where the first line names {len(header)} columns")
        told = dict(zip(header, row, strict=True))
        name = told.pop(NAMES, None)
        yield where, name or None, {domain: _number(value) for domain, value in told.items()}


def _number(text: str) -> Any:
    """A number; or the text that is none, or None for an empty cell, for whoever checks weights to refuse."""
    if not text.strip():
        return None
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _rows(url: str, data: bytes) -> Iterable[Listed]:
    from pyarrow import parquet

    table = parquet.read_table(pa.BufferReader(data))
    for number, row in enumerate(table.to_pylist()):
        name = row.pop(NAMES, None)
        yield f"{url} row {number}", None if name is None else str(name), row


def _json(data: bytes) -> Any:
    return json.loads(data, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} stands twice; keep one")
    return found


class _Strict(yaml.SafeLoader):
    """YAML in which a key is the text that it is (`no` is a name), and stands once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        pairs = []
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be one word, not a list or mapping")
            pairs.append((str(key.value), self.construct_object(value, deep=True)))
        found: dict[Hashable, Any] = {}
        found.update(_once(pairs))
        return found

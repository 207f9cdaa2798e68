"""Mixtures, from settings and files: domains by name, weights that sum to 1, each mixture once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

import pyarrow as pa
import xxhash

from shards.store import exists, filesystem
from train.proxies.settings import Proxies, ProxyError

SUM_TOLERANCE: Final = 1e-3
NAMES: Final = "mixture"  # the column of names
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")


@dataclass(frozen=True)
class Mixture:
    """weights: of every domain of the tokens, in the order of names; they sum to 1."""

    name: str
    weights: Mapping[str, float]


def mixtures_of(settings: Proxies, domains: Sequence[str]) -> tuple[Mixture, ...]:
    """Every mixture that is asked for, in order; the same weights without a name, given twice, are one.

    Raises ProxyError for what names an unknown domain, does not sum to 1, or gives one name to two mixtures.
    """
    asked: list[tuple[str, str | None, Mapping[str, Any]]] = list(_listed("mixtures", settings.mixtures))
    if settings.mixtures_file is not None:
        asked.extend(_read(settings.mixtures_file))
    found: dict[str, Mixture] = {}
    for where, name, weights in asked:
        whole = _whole(where, weights, domains)
        made = Mixture(name or name_of(whole), whole)
        if _NAME.fullmatch(made.name) is None:
            raise ProxyError(
                f"{where}: {made.name!r} cannot name a folder; use letters, digits and _ . + -, at most 64"
            )
        if made.name in found and found[made.name].weights != whole:
            raise ProxyError(f"{where}: {made.name!r} already names another mixture; give each a name of its own")
        found[made.name] = made
    if not found:
        raise ProxyError(f"{settings.mixtures_file}: holds no mixture; give at least one row")
    return tuple(found.values())


def name_of(weights: Mapping[str, float]) -> str:
    """A name that follows from the weights above 0 alone, so that adding a domain renames no mixture."""
    told = json.dumps({domain: round(weight, 12) for domain, weight in sorted(weights.items()) if weight > 0})
    return f"mix-{xxhash.xxh3_64_hexdigest(told.encode())[:10]}"


def _whole(where: str, weights: Mapping[str, Any], domains: Sequence[str]) -> dict[str, float]:
    """Weights of all domains, in the order of `domains`, that sum to 1."""
    for domain, weight in weights.items():
        if domain not in domains:
            near = get_close_matches(str(domain), domains, n=1)
            told = f"did you mean {near[0]!r}" if near else f"the tokens have {', '.join(domains)}"
            raise ProxyError(f"{where}: no domain {domain!r}; {told}")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < float("inf"):
            raise ProxyError(f"{where}: weight {weight!r} of {domain!r} is not a number from 0 on")
    total = sum(weights.values())
    if abs(total - 1) > SUM_TOLERANCE:
        raise ProxyError(f"{where}: weights sum to {total:.6g}; they must sum to 1 (within {SUM_TOLERANCE:g})")
    return {domain: float(weights.get(domain, 0.0)) / total for domain in domains}


def _listed(where: str, given: Any) -> Iterable[tuple[str, str | None, Mapping[str, Any]]]:
    """(where, name, weights) of a list of maps or a map of maps."""
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


def _read(url: str) -> Iterable[tuple[str, str | None, Mapping[str, Any]]]:
    """The mixtures of a file, by the end of its name."""
    if not exists(url):
        raise ProxyError(f"mixtures_file: {url} does not exist")
    files, path = filesystem(url)
    kind = url.rsplit(".", 1)[-1].lower()
    with files.open(path, "rb") as file:
        data: bytes = file.read()
    try:
        if kind in ("yaml", "yml", "json"):
            import yaml

            return list(_listed(url, yaml.safe_load(data)))
        if kind == "csv":
            from pyarrow import csv

            return list(_rows(url, csv.read_csv(pa.BufferReader(data))))
        if kind == "parquet":
            from pyarrow import parquet

            return list(_rows(url, parquet.read_table(pa.BufferReader(data))))
    except (pa.ArrowException, ValueError) as error:
        if isinstance(error, ProxyError):
            raise
        raise ProxyError(f"{url}: cannot be read as {kind}: {str(error).splitlines()[0]}") from None
    except Exception as error:
        if type(error).__module__.startswith("yaml"):
            raise ProxyError(f"{url}: cannot be read as {kind}: {str(error).splitlines()[0]}") from None
        raise
    raise ProxyError(f"mixtures_file: {url} ends in none of .csv, .parquet, .yaml, .json")


def _rows(url: str, table: pa.Table) -> Iterable[tuple[str, str | None, Mapping[str, Any]]]:
    for number, row in enumerate(table.to_pylist()):
        name = row.pop(NAMES, None)
        yield f"{url} row {number}", None if name is None else str(name), row

"""Layouts of published runs, each turned into the plain one (weight_DOMAIN columns and metrics), by names alone.

    regmix         train_the_pile_* weights in one file, metric/the_pile_*_val_loss in another, joined by index.
                   sail-sg/regmix, arXiv:2407.01492
    mixing_laws    experiment, model_size, run, ratio ("0.25-0.75"), step of 1M tokens, valid_domain, loss.
                   yegcjs/mixinglaws, arXiv:2403.16952
    slimpajama     weight_*, model_size, n_tokens, *_loss: checkpoints of runs. arXiv:2606.08167
    datablations   params, tokens, unique_tokens, corpus, variant, val_loss. huggingface/datablations, arXiv:2305.16264

Names of domains and metrics lose what all of them have in common ("train_the_pile_", "_val_loss").
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import xxhash

from mixing.observations.points import Floats, MixingError
from mixing.observations.sheets import Sheet
from mixing.observations.tidy import UNIQUE, WEIGHT

RATIO_DOMAINS: Final = {
    "5Mix": ("academic", "prose", "dialogue", "symbolic", "internet"),
    "RedPajama": ("CommonCrawl", "C4", "GitHub", "arXiv", "Books", "StackExchange", "Wikipedia"),
    "3Mix": ("GitHub", "Books3", "Pile-CC"),
    "2Mix": ("GitHub", "Pile-CC"),
}
"""Domains of `ratio` by experiment, in its order: data configurations of yegcjs/mixinglaws @8ad3e12."""

BATCH_TOKENS: Final = 1_000_000
"""Tokens a step of the mixing-laws runs: batches of 1M tokens (arXiv:2403.16952)."""

UNITS: Final = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_PILE_WEIGHT: Final = re.compile(r"train_the_pile_(.+)")
_PILE_LOSS: Final = re.compile(r"metric/the_pile_(.+)_val_loss")
_SIZE: Final = re.compile(r"(?<![0-9A-Za-z.])(\d+(?:\.\d+)?)([kmbtKMBT])(?![0-9A-Za-z])")


def count_of(text: str) -> float | None:
    """70M is 7e7; None where the text holds no such count."""
    found = _SIZE.search(text.replace("_", " "))
    return float(found[1]) * UNITS[found[2].upper()] if found else None


def _regmix(sheet: Sheet) -> Sheet:
    columns: dict[str, list[Any]] = {}
    for name, cells in sheet.columns.items():
        weight, loss = _PILE_WEIGHT.fullmatch(name), _PILE_LOSS.fullmatch(name)
        columns[f"{WEIGHT}{weight[1]}" if weight else loss[1] if loss else name] = cells
    if any(_PILE_WEIGHT.fullmatch(name) for name in sheet.columns):
        _add_scale(sheet, columns)
    return replace(sheet, columns=columns)


def _add_scale(sheet: Sheet, columns: dict[str, list[Any]]) -> None:
    """The size is in the file's name alone; runs of 1M parameters have 1B tokens (README of the runs)."""
    size, title = count_of(sheet.stem), sheet.stem.replace("_mixture", "")
    if size is not None and "parameters" not in columns:
        columns["parameters"] = [size] * len(sheet)
        if size == 1e6:
            columns["tokens"] = [1e9] * len(sheet)
    if "index" in columns and "run" not in columns:
        columns["run"] = [f"{title}-{index}" for index in sheet.texts("index")]


def _mixing_laws(sheet: Sheet) -> Sheet:
    """Rows without a ratio (models before training) and experiments whose domains are not told are left out."""
    experiments, ratios = sheet.texts("experiment"), sheet.texts("ratio")
    unknown = sorted({name for name, ratio in zip(experiments, ratios, strict=True) if ratio} - set(RATIO_DOMAINS))
    known = [row for row, ratio in enumerate(ratios) if ratio and experiments[row] in RATIO_DOMAINS]
    if not known:
        raise MixingError(
            f"{sheet.name}: no row of an experiment whose domains are known: {', '.join(RATIO_DOMAINS)}; choose one"
        )
    notes = [f"{sheet.name}: the domains of experiment {name} are not told: left out" for name in unknown]
    bare = sum(not ratio for ratio in ratios)
    notes += [f"{sheet.name}: {bare} rows without a ratio left out"] if bare else []
    kept = sheet.rows(known)
    domains, weights, scaled = _ratios(kept)
    notes += [f"{sheet.name}: {scaled} rows of ratios that miss 1 by up to 0.05 scaled to it"] if scaled else []
    sizes = [count_of(text) for text in kept.texts("model_size")]
    columns: dict[str, list[Any]] = {
        "run": [f"{name}/{run}" for name, run in zip(kept.texts("experiment"), kept.texts("run"), strict=True)],
        "parameters": [np.nan if size is None else size for size in sizes],
        "tokens": (kept.numbers("step") * BATCH_TOKENS).tolist(),
        **{f"{WEIGHT}{domain}": weights[:, at].tolist() for at, domain in enumerate(domains)},
        "metric": kept.texts("valid_domain"),
        "value": kept.columns["loss"],
    }
    return replace(kept, columns=columns, notes=(*sheet.notes, *notes))


def _ratios(sheet: Sheet) -> tuple[list[str], Floats, int]:
    """Domains of the experiments that are there, weights of each row, and how many rows were scaled."""
    experiments, ratios = sheet.texts("experiment"), sheet.columns["ratio"]
    domains = list(dict.fromkeys(name for one in dict.fromkeys(experiments) for name in RATIO_DOMAINS[one]))
    weights, scaled = np.zeros((len(sheet), len(domains))), 0
    for row, (experiment, ratio) in enumerate(zip(experiments, ratios, strict=True)):
        names = RATIO_DOMAINS[experiment]
        try:
            shares = [float(share) for share in str(ratio).split("-")]
        except ValueError:
            shares = []
        if len(shares) != len(names) or abs(sum(shares) - 1) > 0.05:
            told = f"{len(names)} shares of {', '.join(names)} that sum to 1"
            raise MixingError(f"{sheet.where(row)}: ratio is {ratio!r}; {experiment} has {told}")
        scaled += abs(sum(shares) - 1) > 1e-3
        weights[row, [domains.index(name) for name in names]] = np.array(shares) / sum(shares)
    return domains, weights, scaled


def _slimpajama(sheet: Sheet) -> Sheet:
    """A run is a mixture at a size; its rows are checkpoints."""
    domains = sorted(name for name in sheet.columns if name.startswith(WEIGHT))
    mixtures = zip(*(sheet.numbers(name).round(9).tolist() for name in domains), strict=True)
    sizes = sheet.numbers("model_size")
    columns = {
        "run": [
            f"{size / 1e6:.0f}M-{xxhash.xxh3_64_hexdigest(repr(mixture).encode())[:8]}"
            for size, mixture in zip(sizes, mixtures, strict=True)
        ],
        "parameters": sizes.tolist(),
        "tokens": sheet.columns["n_tokens"],
    }
    rest = {name: cells for name, cells in sheet.columns.items() if name not in ("model_size", "n_tokens")}
    return replace(sheet, columns=columns | {name.removesuffix("_loss"): cells for name, cells in rest.items()})


def _datablations(sheet: Sheet) -> Sheet:
    """One domain a run: the corpus, or the corpus with what was done to it (c4-dedup); seeds are seeds."""
    variants = sheet.texts("variant")
    seeds = [re.search(r"seed(\d+)$", variant) for variant in variants]
    of = [
        corpus if seed or not variant else f"{corpus}-{variant}"
        for corpus, variant, seed in zip(sheet.texts("corpus"), variants, seeds, strict=True)
    ]
    columns: dict[str, list[Any]] = {
        "run": sheet.texts("name"),
        "seed": [int(seed[1]) if seed else None for seed in seeds],
        "parameters": sheet.columns["params"],
        "tokens": sheet.columns["tokens"],
    }
    for domain in sorted(set(of)):
        columns[f"{WEIGHT}{domain}"] = [float(domain == name) for name in of]
        columns[f"{UNIQUE}{domain}"] = [
            cell if domain == name else None for cell, name in zip(sheet.columns["unique_tokens"], of, strict=True)
        ]
    return replace(sheet, columns=columns | {"val_loss": sheet.columns["val_loss"]})


LAYOUTS: Final[dict[str, Callable[[Sheet], Sheet]]] = {
    "regmix": _regmix,
    "mixing_laws": _mixing_laws,
    "slimpajama": _slimpajama,
    "datablations": _datablations,
}

_TOLD_BY: Final = {
    "mixing_laws": {"experiment", "model_size", "run_id", "ratio", "step", "valid_domain", "loss"},
    "slimpajama": {"weight_commoncrawl", "model_size", "n_tokens", "commoncrawl_loss"},
    "datablations": {"params", "tokens", "unique_tokens", "corpus", "variant", "val_loss"},
}
"""Columns that tell a layout; regmix is told by its prefixes."""


def layout_of(sheet: Sheet) -> str | None:
    """The published layout that the columns are of, or None."""
    if any(_PILE_WEIGHT.fullmatch(name) or _PILE_LOSS.fullmatch(name) for name in sheet.columns):
        return "regmix"
    return next((name for name, columns in _TOLD_BY.items() if columns <= set(sheet.columns)), None)


def plain(sheet: Sheet, layout: str) -> Sheet:
    """The sheet in the plain layout. Raises MixingError where its columns are not the layout's."""
    missing = sorted(_TOLD_BY.get(layout, set()) - set(sheet.columns))
    if missing:
        raise MixingError(f"{sheet.name}: layout {layout} has a column {missing[0]!r}, which is not there")
    return LAYOUTS[layout](sheet)

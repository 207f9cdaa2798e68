"""Numbers of the report that a mix left: the mixture and its intervals, laws, curves, the design, what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobs.errors import UserError
from jobs.report.database import Output, Row
from jobs.report.mixture_charts import MOST_CHARTS
from shards.store import join, read_json, write_bytes

MOST_NAMES = 8
OF_A_DOMAIN = ("floors", "ceilings", "max_ratio", "max_epochs")
"""Constraints that limit the share of the one domain they name."""


def mixing(found: Output) -> Row | None:
    """What a run's mix step found, held against what was trained on it; None where there is none."""
    step = next((step for step in found.steps if step["kind"] == "mix"), None)
    if step is None:
        return None
    trained = next((found.manifests[other["step"]] for other in found.steps if other["kind"] == "train"), {})
    return told(join(found.out, step["folder"]), trained.get("trained"))


def told(folder: str, trained: Mapping[str, Any] | None = None) -> Row | None:
    """What the folder of a mix tells; None where it is not done."""
    whole = read_json(join(folder, "mix.json"))
    if whole is None:
        return None
    mixture, optimum = whole.get("mixture") or {}, whole.get("optimum") or {}
    near, domains = optimum.get("near") or {}, list(_domains(mixture, optimum))
    choice = list(_choice(whole.get("law") or {}))
    return {
        "folder": folder,
        "stop": whole.get("stop"),
        "tokens": mixture.get("tokens"),
        "level": mixture.get("level"),
        "objective": mixture.get("objective"),
        "natural": (mixture.get("natural") or {}).get("objective"),
        "minimised": _minimised(whole.get("objective") or {}),
        "spent": whole.get("spent"),
        "domains": domains,
        "bar": max((max(row["share"], row["near"]["high"] if row["near"] else 0.0) for row in domains), default=0.0),
        "prices": _list(optimum, "prices"),
        "phases": _list(mixture, "phases"),
        "beside": _beside(optimum),
        "certificate": optimum.get("certificate"),
        "near": {key: near.get(key) for key in ("within", "farthest")} if near else None,
        "sensitivity": [
            {key: one.get(key) for key in ("name", "change", "loss")} for one in _list(optimum, "sensitivity")
        ],
        "law": {
            "why": (whole.get("law") or {}).get("why"),
            "chosen": [row for row in choice if row["share"]],
            "choice": choice,
        },
        "recalibrated": max((line.get("runs") or 0 for line in (whole.get("at_target") or {}).values()), default=0),
        "worth": whole.get("worth"),
        "rounds": [_round(one) for one in _list(whole, "rounds")],
        "curves": {
            name: {key: curve[key] for key in ("weight", "allowed", "objective")}
            for name, curve in (whole.get("curves") or {}).items()
            if curve and curve.get("objective")
        },
        "fit": whole.get("fit") or {},
        "charts": _first(whole.get("fit") or {}),
        "shares": mixture.get("weights") or {},
        "design": _list(whole, "design"),
        "compared": _compared(folder, trained),
        "warnings": list(dict.fromkeys(_list(whole, "warnings"))),
    }


def write(folder: str) -> str:
    """Write FOLDER/mix.html, one page of a mix alone, and return where it lies. Raises UserError where it has none."""
    from jobs.report.render import render_mixture

    found, url = told(folder), join(folder, "mix.html")
    if found is None:
        raise UserError(f"{folder}: holds no mix.json; run the mix there first")
    write_bytes(url, render_mixture(found, folder).encode())
    return url


def _list(told: Mapping[str, Any], key: str) -> list[Any]:
    return told.get(key) or []


def _minimised(asked: Mapping[str, Any]) -> str:
    weights, worst = asked.get("weights") or {}, asked.get("worst") or []
    alike = len(set(weights.values())) == 1
    mean = _names(list(weights) if alike else [f"{name} x {share:g}" for name, share in weights.items()])
    return "; ".join([*([f"mean of {mean}"] if weights else []), *([f"worst of {_names(worst)}"] if worst else [])])


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= MOST_NAMES else f"{', '.join(names[:4])} and {len(names) - 4} more"


def _domains(mixture: Mapping[str, Any], optimum: Mapping[str, Any]) -> Iterator[Row]:
    """A row a domain, the largest share first."""
    natural = (mixture.get("natural") or {}).get("weights") or {}
    ranges = (optimum.get("near") or {}).get("ranges") or {}
    prices = _list(optimum, "prices")
    for name, share in sorted((mixture.get("weights") or {}).items(), key=lambda entry: (-entry[1], entry[0])):
        yield {
            "domain": name,
            "share": share,
            "near": ranges.get(name),
            "natural": natural.get(name),
            "tokens": (mixture.get("tokens_by_domain") or {}).get(name),
            "epochs": (mixture.get("epochs") or {}).get(name),
            "bound_by": [
                {"constraint": kind, "price": price.get("price")}
                for price in prices
                for kind, _, domain in [price["constraint"].partition(".")]
                if kind in OF_A_DOMAIN and domain == name
            ],
        }


def _beside(optimum: Mapping[str, Any]) -> list[Row]:
    """Other mixtures under the same law, the best first."""
    best = {"name": "optimum", "value": optimum.get("value"), "excess": 0.0, "keeps": True, "change": 0.0}
    rows = [best, *(dict(one) for one in _list(optimum, "comparisons"))]
    if optimum.get("unconstrained"):
        rows.append({**optimum["unconstrained"], "name": "optimum without constraints"})
    return [
        {key: row.get(key) for key in ("name", "value", "excess", "keeps", "change")}
        for row in sorted((row for row in rows if row.get("value") is not None), key=lambda row: row["value"])
    ]


def _choice(law: Mapping[str, Any]) -> Iterator[Row]:
    """A row a law: means over the metrics."""
    rows = _list(law, "choice")
    names = sorted({row["law"] for row in rows})
    for name in sorted(names, key=lambda name: -(_mean(rows, name, "share") or 0.0)):
        yield {"law": name, **{key: _mean(rows, name, key) for key in ("error", "explained", "share")}}


def _mean(rows: list[Row], law: str, key: str) -> float | None:
    values = [row[key] for row in rows if row["law"] == law and row.get(key) is not None]
    return sum(values) / len(values) if values else None


def _first(fit: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The metrics that are drawn: the objective, then as many as fit."""
    order = sorted(fit, key=lambda name: (name != "objective", name))
    return [(name, fit[name]) for name in order[:MOST_CHARTS]]


def _round(one: Mapping[str, Any]) -> Row:
    reasons = _list(one, "why")
    counted = {why: reasons.count(why) for why in dict.fromkeys(reasons)}
    first = [f"{why} ({count})" if count > 1 else why for why, count in list(counted.items())[:3]]
    return {
        **{key: one.get(key) for key in ("number", "mixtures", "seconds", "best")},
        "failed": len(one.get("failed") or {}),
        "why": "; ".join([*first, *([f"{len(counted) - 3} more"] if len(counted) > 3 else [])]),
    }


def _compared(folder: str, trained: Mapping[str, Any] | None) -> Row | None:
    """What training measured, against what was predicted of its mixture."""
    if not trained:
        return None
    from mixing.loop import compare, metrics_of, read_mixture
    from mixing.observations import MixingError

    try:
        return compare(read_mixture(join(folder, "mixture.json")), metrics_of(trained)).told()
    except MixingError:  # nothing that was predicted was measured
        return None

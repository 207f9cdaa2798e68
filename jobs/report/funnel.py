"""Numbers of the report that the manifests hold: the verdict, the steps, what balances, settings and lineage."""

from __future__ import annotations

import dataclasses
from typing import Any

from jobs.errors import UserError
from jobs.report.database import Output, Row
from jobs.steps import STEPS, TOKENS, TRAIN, load_target

OUTCOMES = ("kept", "dropped", "quarantined")
RAW = ("read", "extract")
"""Steps whose bytes are those of raw pages; after them bytes are text."""


def steps(found: Output, bytes_a_token: float | None) -> list[Row]:
    """A row a step: rows and bytes by outcome, its top rule, speed and memory. Tokens are estimated from text bytes."""
    told = []
    for number, step in enumerate(found.steps):
        account = found.manifests[step["step"]]
        rules = sorted(account.get("rules", {}).items(), key=lambda pair: (-pair[1], pair[0]))
        seconds, rows, size = account.get("seconds") or 0.0, account["rows"], account["bytes"]
        is_text = step["kind"] not in RAW
        told.append(
            {
                "number": number,
                "step": step["step"],
                "kind": step["kind"],
                "group": step["group"],
                "folder": step["folder"],
                "rows": rows,
                "bytes": size,
                "kept_share": _share(rows["kept"], rows["in"]),
                "tokens_in": size["in"] / bytes_a_token if bytes_a_token and is_text else None,
                "tokens_out": size["out"] / bytes_a_token if bytes_a_token else None,
                "top_rule": rules[0][0] if rules else None,
                "top_rule_rows": rules[0][1] if rules else 0,
                "rows_per_second": rows["in"] / seconds if seconds else None,
                "bytes_per_second": size["in"] / seconds if seconds else None,
                "seconds": seconds,
                "cpu_seconds": account.get("cpu_seconds"),
                "peak_bytes": account.get("peak_bytes"),
            }
        )
    return told


def verdict(found: Output, tokens: Row | None) -> Row:
    """The whole run in one row. `finished` is false where the recipe has steps that no manifest tells of."""
    accounts = [found.manifests[step["step"]] for step in found.steps]
    first, last = accounts[0], accounts[-1]
    wanted = [entry.get("name", entry.get("step")) for entry in found.run.get("recipe", {}).get("steps", [])]
    done = {step["step"] for step in found.steps}
    missing = [name for name in wanted if name not in done]
    recipe = found.run.get("recipe", {})
    missing += [key for key in ("tokens", "train") if recipe.get(key) not in (None, False) and key not in done]
    rows = {"in": first["rows"]["in"], "kept": last["rows"]["kept"]}
    for outcome in ("dropped", "quarantined"):
        rows[outcome] = sum(account["rows"][outcome] for account in accounts)
    return {
        "rows": rows,
        "kept_share": _share(rows["kept"], rows["in"]),
        "bytes_in": first["bytes"]["in"],
        "bytes_out": last["bytes"]["out"],
        "tokens": tokens["tokens"] if tokens else None,
        "unfinished_steps": missing,
        "finished": not missing,
        "max_quarantined": found.run.get("recipe", {}).get("max_quarantined", 0.001),
        "quarantined_share": _share(rows["quarantined"], rows["in"]),
    }


def tokens(found: Output) -> Row | None:
    """What the token shards hold, and how many bytes of text make a token; None before there are tokens."""
    step = next((step for step in found.steps if step["kind"] == "tokens"), None)
    account = found.manifests[step["step"]] if step else {}
    if not account.get("tokens"):
        return None
    return {
        "tokens": account["tokens"],
        "bytes_a_token": account["bytes"]["in"] / account["tokens"],
        "by_domain": account.get("tokens_by_domain", {}),
    }


def balance(found: Output) -> list[Row]:
    """Each law of conservation with both sides: a step's outcomes, the way from step to step, and the files
    themselves."""
    checks = []
    for step in found.steps:
        account = found.manifests[step["step"]]
        for what in ("rows", "bytes"):
            sides = account[what]
            checks.append(
                _check(
                    f"{step['step']}: {what} in = kept + dropped + quarantined",
                    sides["in"],
                    sum(sides[o] for o in OUTCOMES),
                )
            )
    for before, after in zip(found.steps[:-1], found.steps[1:], strict=True):
        one, two = found.manifests[before["step"]], found.manifests[after["step"]]
        checks.append(
            _check(f"rows kept by {before['step']} = rows into {after['step']}", one["rows"]["kept"], two["rows"]["in"])
        )
    return checks + _stored(found)


def _stored(found: Output) -> list[Row]:
    """Rows counted in the files against the manifests."""
    checks = []
    for outcome, view in (("dropped", "dropped"), ("quarantined", "quarantine")):
        counted = {row["step"]: row["n"] for row in found.rows(f"SELECT step, count(*) AS n FROM {view} GROUP BY step")}
        told = sum(found.manifests[step["step"]]["rows"][outcome] for step in found.steps)
        checks.append(
            _check(f"rows in the files of {view} = rows {outcome} in the manifests", sum(counted.values()), told)
        )
    holding = [step for step in found.steps if step["data"]]
    if holding:
        kept = found.row("SELECT count(*) AS n FROM documents_stored")["n"]
        told = found.manifests[holding[-1]["step"]]["rows"]["kept"]
        checks.append(_check("rows in the files of documents = rows kept by the last step", kept, told))
    return checks


def _check(law: str, left: int, right: int) -> Row:
    return {"law": law, "left": left, "right": right, "holds": left == right}


def settings(found: Output) -> list[Row]:
    """Each step's settings beside their defaults; `changed` is null where this installation lacks the step."""
    told = []
    for step in found.steps:
        values = dict(found.manifests[step["step"]].get("settings", {}))
        known = _defaults(step["kind"])
        rows = [
            {
                "setting": key,
                "value": value,
                "default": _plain(known.get(key)) if known else None,
                "changed": None if known is None or key not in known else _plain(value) != _plain(known[key]),
            }
            for key, value in sorted(values.items())
            if not (step["kind"] == "read" and key == "sources")
        ]
        told.append({"step": step["step"], "kind": step["kind"], "settings": rows})
    return told


def _defaults(kind: str) -> Row | None:
    """The defaults of a kind of step; None where its class cannot be loaded here."""
    special = {"tokens": TOKENS, "train": TRAIN, "read": "jobs.recipe_model:Settings"}
    target = special.get(kind) or (STEPS[kind].target if kind in STEPS else None)
    if target is None:
        return None
    try:
        fields = getattr(load_target(target), "__pydantic_fields__", {})
    except (UserError, ImportError):
        return None  # a package of the run's installation is missing in this one
    return {
        name: field.get_default(call_default_factory=True) for name, field in fields.items() if not field.is_required()
    }


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def lineage(found: Output, most_inputs: int = 50) -> Row:
    """Where the output comes from: inputs with digests, command, versions, fingerprints and digests of each step."""
    run = found.run
    inputs = [_input(entry) for entry in found.manifests[found.steps[0]["step"]].get("inputs", [])]
    return {
        "command": run.get("command"),
        "engine": run.get("engine"),
        "workers": run.get("workers"),
        "seed": run.get("seed"),
        "limit": run.get("limit"),
        "started": run.get("started"),
        "finished": run.get("finished"),
        "seconds": run.get("seconds"),
        "versions": run.get("versions") or {},
        "recipe": run.get("recipe"),
        "recipe_path": run.get("recipe_path"),
        "format": run.get("format"),
        "sources": found.manifests[found.steps[0]["step"]].get("settings", {}).get("sources", []),
        "inputs": inputs[:most_inputs],
        "inputs_count": len(inputs),
        "inputs_bytes": sum(entry["bytes"] or 0 for entry in inputs),
        "steps": [
            {
                "step": step["step"],
                "fingerprint": step.get("fingerprint"),
                "digest": step.get("digest"),
                "dropped_digest": step.get("dropped_digest"),
                "signals_digest": step.get("signals_digest"),
                "code": found.manifests[step["step"]].get("code", {}),
            }
            for step in found.steps
        ],
    }


def _input(entry: Any) -> Row:
    if isinstance(entry, dict):
        return {
            "name": entry.get("name"),
            "bytes": entry.get("bytes"),
            "digest": entry.get("digest") or entry.get("etag"),
        }
    name, size, digest = [*list(entry if isinstance(entry, list | tuple) else [entry]), None, None][:3]
    return {"name": name, "bytes": size, "digest": digest}


def _share(part: float, of: float) -> float | None:
    return part / of if of else None

"""`gristmill look`: page through documents, kept or dropped, in an order that is the same each time."""

from __future__ import annotations

from typing import Any

from jobs.errors import UserError, nearest
from jobs.report.database import Output, Row, opened
from jobs.report.numbers import plain, whole
from jobs.report.visible import line
from jobs.verbs.paper import block, dump, show

CHARACTERS = 2000


def run(out: str, dropped: str | None = None, n: int = 20, json: bool = False) -> int:
    """Show n documents by hash(seed, id): of the output, or of what a step or one of its rules dropped."""
    with opened(out) as found:
        rows = drops(found, dropped, n) if dropped else kept(found, n)
    if json:
        dump(rows)
    elif rows:
        show("\n".join(text for row in rows for text in told(row)))
    else:
        print("none")
    return 0


def kept(found: Output, n: int) -> list[Row]:
    """n documents of the output, whole."""
    return _sample(found, "documents_stored", "true", [], n)


def drops(found: Output, address: str, n: int) -> list[Row]:
    """n dropped documents of STEP or STEP.RULE; a preset's name stands for all of its rules."""
    step, _, rule = address.partition(".")
    names = [entry["step"] for entry in found.steps]
    if step not in names:
        raise UserError(
            f"--dropped {address}: there is no step {step!r} in this output; {nearest(step, names, what='steps')}"
        )
    if not rule:
        return _sample(found, "dropped", "step = ?", [step], n)
    rules = [row["rule"] for row in found.rows("SELECT DISTINCT rule FROM dropped WHERE step = ?", step)]
    wanted = [known for known in rules if known == rule or known.startswith(rule + ".")]
    if not wanted:
        what = f"{step} dropped nothing by a rule {rule!r}" if rules else f"{step} dropped nothing"
        raise UserError(f"--dropped {address}: {what}; {nearest(rule, rules, what='rules that dropped')}")
    return _sample(found, "dropped", "step = ? AND rule IN (SELECT unnest(?))", [step, wanted], n)


def _sample(found: Output, view: str, where: str, parameters: list[Any], n: int) -> list[Row]:
    seed = str(found.run.get("seed", 0))
    return found.rows(
        f"SELECT * FROM {view} WHERE {where} ORDER BY md5(concat(?::VARCHAR, id)), id LIMIT ?", *parameters, seed, n
    )


def told(row: Row) -> list[str]:
    """A document for a terminal: a line of what it is, a line of why it went, the beginning of its text."""
    facts = [row["id"], row["source"], row.get("language"), row.get("url")]
    lines = ["  ".join(line(str(fact), 200) for fact in facts if fact)]
    if "rule" in row:
        lines.append(f"dropped by {row['step']}: {reason(row)}")
    elif (row.get("copies") or 1) > 1:
        lines.append(f"stands for {whole(row['copies'])} inputs")
    return [*lines, *block(row["text"], CHARACTERS), ""]


def reason(row: Row) -> str:
    """Rule, value against threshold, and evidence of a dropped row, in words."""
    parts = [row["rule"]]
    if row["value"] is not None:
        parts.append(
            plain(row["value"]) + (f" against {plain(row['threshold'])}" if row["threshold"] is not None else "")
        )
    if row["evidence"]:
        parts.append(line(row["evidence"], 200))
    others = [rule for rule in row["rules"] or () if rule != row["rule"]]
    return ", ".join(parts) + (f"; also fails {', '.join(others)}" if others else "")

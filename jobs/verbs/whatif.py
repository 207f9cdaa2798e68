"""`gristmill whatif`: what other thresholds would keep, from what was measured, without a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jobs.report.database import Output, Row, opened
from jobs.report.numbers import plain, whole
from jobs.report.rebuilt import one_row
from jobs.verbs.paper import cell, dump, table
from jobs.verbs.whatif_changes import Place, places
from jobs.verbs.whatif_end import End, end
from jobs.verbs.whatif_judge import KEPT, Judgement, judge, prepare
from jobs.verbs.whatif_later import Later

SAMPLES = 5


def run(out: str, sets: Sequence[str] = (), json: bool = False) -> int:
    """Judge an output again with changed settings. Raises UserError for what stored measurements cannot answer."""
    with opened(out) as found:
        answer = ask(found, sets)
    if json:
        dump(answer)
    else:
        print("\n".join(told(answer)))
    return 0


def ask(found: Output, sets: Sequence[str]) -> Row:
    """The whole answer as plain values."""
    every = places(found, sets)
    changed = [place for place in every if place.changes]
    prepare(found)
    judgements = [judge(found, place) for place in changed if not place.is_corpus]
    final = end(found, every, changed, Later(found, every))
    return {
        "sets": list(sets),
        "changes": [
            {
                "step": place.name,
                "setting": key,
                "before": _in_force(place.old, key, old),
                "after": _in_force(place.new, key, new),
            }
            for place in changed
            for key, (old, new) in place.changes.items()
        ],
        "steps": [_judged(found, judgement, every, changed) for judgement in judgements],
        "later": _later(found, changed),
        "final": _final(final),
    }


def _in_force(step: Any, key: str, value: Any) -> Any:
    """A setting's value; for a threshold of a preset that the recipe leaves alone, the preset's own."""
    if value is not None or not hasattr(step, "checks"):
        return value
    return next((check.threshold for check in one_row(step) if check.rule == key.removeprefix("overrides.")), None)


def _judged(found: Output, judgement: Judgement, every: Sequence[Place], changed: Sequence[Place]) -> Row:
    """One changed step: rows kept and dropped before and after, by rule, and who would change sides.

    Rows that an earlier changed step would keep come to this step too; they were sent through it. Which of them do is
    not known where a whole-corpus step stands between.
    """
    place = judgement.place
    between = any(other.is_corpus and changed[0].number <= other.number < place.number for other in every)
    account, more, after = found.manifests[place.name], _arrived(found, place), judgement.rules()
    kept_more, unknown = more.pop(KEPT, 0), more.pop(None, 0)
    after.update({str(rule): rows for rule, rows in more.items()})
    rules = sorted(
        {*account["rules"], *after}, key=lambda rule: (-max(account["rules"].get(rule, 0), after[rule]), rule)
    )
    kept = judgement.count(kept_after=True) + judgement.untouched + kept_more
    return {
        "step": place.name,
        "exact": not between and not unknown,
        "kept": {"before": account["rows"]["kept"], "after": kept},
        "dropped": {"before": account["rows"]["dropped"], "after": after.total()},
        "rules": [{"rule": rule, "before": account["rules"].get(rule, 0), "after": after[rule]} for rule in rules],
        "newly_kept": judgement.count(kept_before=False, kept_after=True),
        "newly_dropped": judgement.count(kept_before=True, kept_after=False),
        "samples": {"newly_kept": _samples(found, place, True), "newly_dropped": _samples(found, place, False)},
    }


def _arrived(found: Output, place: Place) -> dict[str | None, int]:
    """Rows that an earlier changed step would keep, by what this step makes of them: its rule, KEPT, or None where
    unknown."""
    rows = found.rows(
        f"""SELECT CASE WHEN outcome = 'unknown' THEN NULL WHEN step = ? THEN coalesce(rule, '') ELSE '{KEPT}' END AS
        rule, outcome, sum(rows)::BIGINT AS n
        FROM fates WHERE "at" < ? AND (id, "at") IN (SELECT id, "at" FROM moved WHERE kept)
        AND (outcome IN ('kept', 'unknown') OR step IN (SELECT unnest(?))) AND NOT (outcome = 'quarantined' AND step =
        ?) GROUP BY ALL""",
        place.name,
        place.number,
        [step["step"] for step in found.steps[place.number :]],
        place.name,
    )
    told: dict[str | None, int] = {}
    for row in rows:
        told[row["rule"]] = told.get(row["rule"], 0) + row["n"]
    return told


def _samples(found: Output, place: Place, kept: bool) -> list[str]:
    rows = found.rows(
        'SELECT id FROM moved WHERE "at" = ? AND kept = ? ORDER BY md5(concat(?::VARCHAR, id)) LIMIT ?',
        place.number,
        kept,
        str(found.run.get("seed", 0)),
        SAMPLES,
    )
    return [row["id"] for row in rows]


def _later(found: Output, changed: Sequence[Place]) -> list[Row]:
    """What per-document steps after would make of the newly kept rows."""
    return found.rows(
        "SELECT outcome, step, rule, sum(rows)::BIGINT AS rows FROM fates "
        'WHERE (id, "at") IN (SELECT id, "at" FROM moved WHERE kept) '
        "GROUP BY ALL ORDER BY rows DESC, outcome, step, rule"
    )


def _final(final: End) -> Row:
    return {
        "before": final.before,
        "low": final.low,
        "high": final.high,
        "exact": final.exact,
        "why": final.why,
        "touched": final.touched,
    }


def told(answer: Row) -> Iterator[str]:
    """The answer for a terminal."""
    for change in answer["changes"]:
        yield f"{change['step']}.{change['setting']}: {_value(change['before'])} -> {_value(change['after'])}"
    for step in answer["steps"]:
        yield from _step(step)
    if answer["later"]:
        parts = [
            f"{whole(row['rows'])} {row['outcome']}{' by ' + row['step'] + ': ' + row['rule'] if row['step'] else ''}"
            for row in answer["later"]
        ]
        yield ""
        yield "of the newly kept rows, the per-document steps after would make: " + ", ".join(parts)
    yield ""
    final = answer["final"]
    start = f"documents at the end: {whole(final['before'])} -> "
    if final["exact"]:
        yield f"{start}{whole(final['low'])} ({_signed(final['low'] - final['before'])}), exact"
    else:
        yield f"{start}from {whole(final['low'])} to {whole(final['high'])}; {final['why']}"


def _step(step: Row) -> Iterator[str]:
    yield ""
    rows: list[tuple[Any, ...]] = [
        (what, step[what]["before"], step[what]["after"], _signed(step[what]["after"] - step[what]["before"]))
        for what in ("kept", "dropped")
    ]
    rows += [
        (f"  {rule['rule']}", rule["before"], rule["after"], _signed(rule["after"] - rule["before"]))
        for rule in step["rules"]
        if rule["before"] != rule["after"]
    ]
    yield from table(
        rows, (step["step"] + (", exact" if step["exact"] else ", of the rows measured"), "before", "after", "change")
    )
    for what in ("newly_kept", "newly_dropped"):
        if step[what]:
            yield f"{what.replace('_', ' ')}: {whole(step[what])}, such as {', '.join(step['samples'][what])}"


def _signed(number: int) -> str:
    return f"{number:+,}" if number else "0"


def _value(value: Any) -> str:
    return (
        "none"
        if value is None
        else plain(value)
        if isinstance(value, int | float) and not isinstance(value, bool)
        else cell(value, 200)
    )

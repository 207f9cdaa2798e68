"""`gristmill why`: one document's way through the steps: what each measured, what decided, and its duplicates."""

from __future__ import annotations

from jobs.errors import UserError
from jobs.report.database import Output, opened
from jobs.verbs.paper import dump, show
from jobs.verbs.why_told import told
from jobs.verbs.why_way import way

LEAST = 6
"""Characters of an id that are enough where they are unique."""
_EVERY = (
    "SELECT id, source_id, url FROM documents_stored UNION ALL SELECT id, NULL, url FROM dropped "
    "UNION ALL SELECT id, NULL, location FROM quarantine WHERE id IS NOT NULL"
)


def run(out: str, document: str, json: bool = False) -> int:
    """Tell the way of a document, named by id, the beginning of an id, source_id or URL."""
    with opened(out) as found:
        answer = way(found, find(found, document))
    if json:
        dump(answer)
    else:
        show("\n".join(told(answer)))
    return 0


def find(found: Output, said: str) -> str:
    """The id that is meant. Raises UserError where none or more than one is."""
    said = said.strip()
    rows = found.rows(f"SELECT DISTINCT id FROM ({_EVERY}) WHERE id = ? LIMIT 1", said)
    if not rows and len(said) >= LEAST:
        rows = found.rows(
            f"SELECT DISTINCT id FROM ({_EVERY}) WHERE starts_with(id, lower(?)) ORDER BY id LIMIT 4", said
        )
    if not rows and said:
        rows = found.rows(
            f"SELECT DISTINCT id FROM ({_EVERY}) WHERE source_id = ? OR url = ? ORDER BY id LIMIT 4", said, said
        )
    if len(rows) == 1:
        return str(rows[0]["id"])
    if rows:
        few = ", ".join(row["id"] for row in rows[:3])
        raise UserError(
            f"{said}: stands for more than one document: {few}{' ...' if len(rows) > 3 else ''}; give one of these ids"
        )
    raise UserError(f"{said or 'no id'}: no document has this id; {_hint(found, said)}", exit_code=1)


def _hint(found: Output, said: str) -> str:
    """The nearest id where one is near; else where ids are to be seen."""
    if 3 <= len(said) <= 64:
        near = found.rows(
            "SELECT id, least(levenshtein(id, lower(?)), levenshtein(left(id, ?), lower(?))) AS far FROM "
            f"({_EVERY}) ORDER BY far, id LIMIT 1",
            said, len(said), said,
        )  # fmt: skip
        if near and near[0]["far"] <= max(2, len(said) // 6):
            return f"did you mean {near[0]['id']}?"
    return f"ids are shown by: gristmill look {found.out}"

"""`gristmill mix observe OUT TABLE...`: what was measured since, fed back to a mix."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence

from jobs.errors import UserError
from jobs.verbs.mix import asked
from shards.store import exists, join


def run(out: str, tables: Sequence[str], *, json: bool = False) -> int:
    """Keep the tables in the mix's folder; its next run fits and optimises anew."""
    from mixing.loop import observe

    folder = asked.mix_folder(out) or out
    if not exists(join(folder, "mixture.json")):
        raise UserError(f"{out}: holds no mixture; give a run with a section mix:, or the folder of gristmill mix run")
    told = [{"table": table, "rows": len(observe(folder, asked.table_of(table)))} for table in tables]
    if json:
        print(json_format.dumps(told, indent=1))
    for one in told:
        print(f"{one['table']}: {one['rows']} rows; run the mix again to take them in", file=sys.stderr)
    return 0

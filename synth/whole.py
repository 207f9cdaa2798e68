"""A run from settings to files: tasks, then how far its verdicts are to be trusted, then Parquet that anything reads.

OUT/store.sqlite    all that was asked, replied and verified
OUT/trust.json      false-positive and false-negative rates of planted answers, golds in doubt
OUT/samples/ items/ requests/ contents/    Parquet
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from shards.store import join, write_json
from synth import trust as trusting
from synth.store import Store, to_parquet

if TYPE_CHECKING:
    from synth.running import Account, Progress, Synth

Say = Callable[[str], None]


def run(
    settings: Synth, out: str, *, say: Say | None = None, progress: Callable[[Progress], None] | None = None
) -> Account:
    """Run, or go on with, the settings' tasks in the folder `out`. Raises as synth.running.run does."""
    from synth.running import run as run_tasks

    settings.files()  # what is not there is told before anything is asked
    _require_sandbox(settings)
    account = run_tasks(settings, out, say=say, progress=progress)
    _finish(settings, out, say)
    return account


def verify(settings: Synth, out: str, *, say: Say | None = None) -> Account:
    """Verdicts anew, no teacher asked."""
    from synth.running import verify as verify_anew

    account = verify_anew(settings, out, say=say)
    _finish(settings, out, say)
    return account


def _require_sandbox(settings: Synth) -> None:
    """Where the settings say that rows are verified as programs. Raises SynthError, with what to install or allow."""
    rows = [settings.rows, *(one.get("rows") for one in settings.tasks if isinstance(one, Mapping))]
    values = [one.get("values", {}) if isinstance(one, Mapping) else one.values for one in rows if one is not None]
    if any(one.get("verifier") == "code" for one in values):
        from synth.verifiers.code import require_sandbox

        require_sandbox()


def _finish(settings: Synth, out: str, say: Say | None) -> None:
    from synth.verifiers import Workers

    told = settings.checking
    with (
        Store.open(out, read_only=True) as store,
        Workers(
            processes=told.processes, limit_seconds=told.limit_seconds, limits_seconds=told.limits_by_kind,
            memory_bytes=told.memory_mebibytes << 20,
        ) as workers,
    ):  # fmt: skip
        found = trusting.trust(store, workers.check_all, seed=settings.seed)
        write_json(join(out, trusting.FILE), found)
        to_parquet(store, out)
    for line in trusting.lines(found):
        if say is not None:
            say(line)

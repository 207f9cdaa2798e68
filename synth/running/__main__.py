"""python -m synth.running SETTINGS.json, which holds {"settings", "out"}, perhaps "do": run, verify or status, and
"json": true for progress as JSON lines on standard output. Lines for people go to standard error."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

from train.program import WRONG_USE, ended, say

NEEDED, MAY = {"settings", "out"}, {"do", "json"}


def main(arguments: list[str]) -> int:
    """Exit code 0 done (also where a budget stopped it, which is told), 1 failed, 2 wrong use, 130 interrupted."""
    if len(arguments) != 1:
        print("use: python -m synth.running SETTINGS.json", file=sys.stderr)
        return WRONG_USE
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        told = _told(arguments[0])
    except (OSError, ValueError) as error:
        say(WRONG_USE, f"{arguments[0]}: {' '.join(str(error).splitlines())}")
        return WRONG_USE
    return ended(lambda: _do(told))


def _told(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        told = json.load(file)
    if not isinstance(told, dict) or not set(told) >= NEEDED or set(told) - NEEDED - MAY:
        raise ValueError("it would hold settings and out, perhaps do and json, and nothing else")
    if told.get("do", "run") not in ("run", "verify", "status"):
        raise ValueError(f"do: {told['do']!r} is none of run, verify, status")
    from synth.running.settings import Synth
    from synth.running.works import validated

    told["settings"] = validated(Synth, told["settings"], "")
    return told


def _do(told: dict[str, Any]) -> None:
    from synth.running.front_door import run, status, verify

    settings, out, as_json = told["settings"], str(told["out"]), told.get("json", False) is True
    match told.get("do", "run"):
        case "run":
            account = run(settings, out, say=None if as_json else _line, progress=_json if as_json else None)
        case "verify":
            account = verify(settings, out, say=_line)
        case _:
            account = status(out)
    print(json.dumps(account.plain()), flush=True)


def _line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _json(progress: Any) -> None:
    print(json.dumps(progress.plain()), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

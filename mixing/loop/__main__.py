"""python -m mixing.loop SETTINGS.json, which holds {"settings", "tokens", "out"}, perhaps "retry_failed": true."""

from __future__ import annotations

import json
import sys

from pydantic import TypeAdapter, ValidationError

from mixing.loop.settings import Mix
from train.program import WRONG_USE, ended, say

NEEDED = {"settings", "tokens", "out"}


def main(arguments: list[str]) -> int:
    """Exit code 0 done (failed proxies are told), 1 failed, 2 wrong use, told in one line on stderr."""
    if len(arguments) != 1:
        print("use: python -m mixing.loop SETTINGS.json", file=sys.stderr)
        return WRONG_USE
    try:
        settings, tokens, out, retry_failed = _told(arguments[0])
    except (OSError, ValueError) as error:
        say(WRONG_USE, f"{arguments[0]}: {error}")
        return WRONG_USE
    from mixing.loop.running import run

    return ended(lambda: run(settings, tokens=tokens, out=out, retry_failed=retry_failed, say=_line))


def _line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _told(path: str) -> tuple[Mix, list[str], str, bool]:
    with open(path, encoding="utf-8") as file:
        told = json.load(file)
    if not isinstance(told, dict) or set(told) - {"retry_failed"} != NEEDED:
        raise ValueError("it would hold settings, tokens and out, perhaps retry_failed, and nothing else")
    try:
        settings = TypeAdapter(Mix).validate_json(json.dumps(told["settings"]))
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, one['loc'])) or 'settings'}: {one['msg']}" for one in error.errors()]
        raise ValueError("; ".join(lines)) from error
    tokens = [told["tokens"]] if isinstance(told["tokens"], str) else list(told["tokens"])
    return settings, tokens, str(told["out"]), told.get("retry_failed", False) is True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""python -m train.sft SETTINGS.json, alone or by torchrun. The file holds {"settings", "model", "data", "out"}."""

from __future__ import annotations

import json
import sys
from typing import Any

from pydantic import TypeAdapter, ValidationError

from train.program import WRONG_USE, ended, say
from train.sft.settings import Sft

KEYS = {"settings", "model", "data", "out"}


def main(arguments: list[str]) -> int:
    """Exit code 0 done, 1 failed, 2 wrong use; what is wrong is one line on stderr."""
    if len(arguments) != 1:
        print("use: python -m train.sft SETTINGS.json", file=sys.stderr)
        return WRONG_USE
    try:
        settings, told = _told(arguments[0])
    except (OSError, ValueError) as error:
        say(WRONG_USE, f"{arguments[0]}: {error}")
        return WRONG_USE
    from train.sft.training import run

    return ended(lambda: run(settings, model=told["model"], data=told["data"], out=told["out"], progress=sys.stderr))


def _told(path: str) -> tuple[Sft, dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        told = json.load(file)
    if not isinstance(told, dict) or set(told) != KEYS:
        raise ValueError("it would hold an object of settings, model, data and out, and nothing else")
    try:
        settings = TypeAdapter(Sft).validate_json(json.dumps(told["settings"]), strict=True)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, one['loc'])) or 'settings'}: {one['msg']}" for one in error.errors()]
        raise ValueError("; ".join(lines)) from error
    return settings, told


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

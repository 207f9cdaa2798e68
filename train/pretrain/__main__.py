"""python -m train.pretrain SETTINGS.json, alone or by torchrun. The file holds {"settings", "tokens", "out"}."""

from __future__ import annotations

import json
import sys

from pydantic import TypeAdapter, ValidationError

from train.pretrain.settings import Pretrain
from train.program import WRONG_USE, ended, say


def main(arguments: list[str]) -> int:
    """Exit code 0 done, 1 failed, 2 wrong use; what is wrong is one line on stderr."""
    if len(arguments) != 1:
        print("use: python -m train.pretrain SETTINGS.json", file=sys.stderr)
        return WRONG_USE
    try:
        told = _told(arguments[0])
    except (OSError, ValueError) as error:
        say(WRONG_USE, f"{arguments[0]}: {error}")
        return WRONG_USE
    settings, tokens, out = told
    from train.pretrain.running import run

    return ended(lambda: run(settings, tokens=tokens, out=out, progress=sys.stderr))


def _told(path: str) -> tuple[Pretrain, list[str], str]:
    with open(path, encoding="utf-8") as file:
        told = json.load(file)
    unknown = sorted(set(told) ^ {"settings", "tokens", "out"}) if isinstance(told, dict) else ["no object"]
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: it would hold settings, tokens and out, and nothing else")
    try:
        settings = TypeAdapter(Pretrain).validate_json(json.dumps(told["settings"]), strict=True)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, one['loc'])) or 'settings'}: {one['msg']}" for one in error.errors()]
        raise ValueError("; ".join(lines)) from error
    return settings, [told["tokens"]] if isinstance(told["tokens"], str) else told["tokens"], told["out"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

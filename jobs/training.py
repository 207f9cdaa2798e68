"""A recipe's `train:` section: pretraining on the run's own token shards, in a process of its own.

What was trained is never removed: training on the same tokens goes on where it stopped, or says why it cannot; a folder
that was trained on other tokens, or by another mixture that `mix:` found, is put aside under OUT/replaced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jobs import children
from jobs.fingerprint import plain
from shards.manifest import read_manifest
from shards.store import join, read_json, write_json

RESULT = "trained.json"
MARK = "trained-on.json"
REPLACED = "replaced"


def prepare(out: str, name: str, tokens: str, mixture: str | None = None) -> None:
    """Make OUT/name ready to train on the token shards of the folder `tokens`, by a mixture of this digest."""
    account = read_manifest(tokens)
    mark = {"fingerprint": account["fingerprint"], "tokens": account["ordered_digest"]}
    if mixture is not None:
        mark["mixture"] = mixture
    url = join(out, name, MARK)
    folder = join(out, name)
    if os.path.isdir(folder) and os.listdir(folder) and read_json(url) != mark:
        put_aside(out, name)
    write_json(url, mark)


def is_trained(out: str, name: str) -> bool:
    """Whether a folder holds training of ours, finished or not."""
    return read_json(join(out, name, MARK)) is not None


def is_result(folder: str, account: Mapping[str, Any]) -> bool:
    """Whether a step's manifest tells of what its folder holds: training may have gone on since."""
    return bool(read_json(join(folder, RESULT)) == account.get("trained"))


def put_aside(out: str, name: str) -> str:
    """Move OUT/name to OUT/replaced/name-N, N counted up; return where it lies now."""
    number = 1
    while os.path.exists(target := join(out, REPLACED, f"{name}-{number}")):
        number += 1
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.rename(join(out, name), target)
    return target


def pretrain(
    settings: Any,
    tokens: Sequence[str],
    folder: str,
    *,
    say: Callable[[str], None] | None = None,
    processes: int = 1,
) -> dict[str, Any]:
    """Pretrain on token shards, and return what FOLDER/trained.json tells.

    Raises UserError with the program's own last words.
    """
    told = {"settings": plain(settings), "tokens": list(tokens), "out": folder}
    return child("train.pretrain", told, say=say, processes=processes)


def child(
    module: str, told: dict[str, Any], *, say: Callable[[str], None] | None = None, processes: int = 1
) -> dict[str, Any]:
    """Run one of the training room's programs on {"settings", "out", ...}; return what OUT/trained.json tells."""
    folder = told["out"]
    try:
        children.run(module, told, processes=processes, say=say)
    except children.ChildFailedError as error:
        raise children.failed(error, f"what is done stays in {folder}; mend it and run again: it goes on") from None
    return dict(read_json(join(folder, RESULT)) or {})


def summary(told: Mapping[str, Any]) -> str:
    """What was trained, in a line."""
    return f"{told.get('tokens', 0):>9} tokens in {told.get('steps', 0)} steps"

"""What a run may go on from: its own checkpoint, under the same settings but for changes that lie ahead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from train.feed.token_shards import TokenShards
from train.pretrain.settings import FREE, Pretrain
from train.pretrain.state import TrainingError

Json = dict[str, Any]


def identity_of(settings: Pretrain, shards: TokenShards) -> Json:
    """What a checkpoint remembers of its run: all settings, and which tokens in which tokenizer."""
    return {"settings": settings.plain(), "tokens": shards.digest, "tokenizer": shards.tokenizer_digest}


def continuation_check(settings: Pretrain, shards: TokenShards, out: str) -> Callable[[Json, int], None]:
    """check(stored identity, step): raises TrainingError where this run is not what the checkpoint of `step` began."""
    told = identity_of(settings, shards)

    def check(stored: Json, step: int) -> None:
        if stored["tokens"] != told["tokens"] or stored["tokenizer"] != told["tokenizer"]:
            raise TrainingError(
                f"{out}: its checkpoint of step {step} was trained on other tokens; give the folders of that run, or "
                "another out"
            )
        before, now = stored["settings"], told["settings"]
        for name in sorted(now):
            if name not in FREE and name != "changes" and before.get(name) != now[name]:
                raise TrainingError(
                    f"{name}: {now[name]} here, but {out} was trained with {before.get(name)} up to step {step}; put "
                    f"it back, make it a change (changes: at_step {step} or later) where changes know it, or use "
                    "another out"
                )
        _check_changes(before["changes"], now["changes"], step, out)

    return check


def _check_changes(before: list[Json], now: list[Json], step: int, out: str) -> None:
    done, wanted = ([change for change in told if change["at_step"] < step] for told in (before, now))
    if done != wanted:
        raise TrainingError(
            f"changes: those before step {step}, up to which {out} is trained, were {_short(done)}, and are now "
            f"{_short(wanted)}; put them back: what is new begins at step {step} or later"
        )


def _short(changes: list[Json]) -> str:
    told = [{name: value for name, value in change.items() if value is not None} for change in changes]
    return ", ".join(map(str, told)) or "none"

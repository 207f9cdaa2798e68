"""A flow's conversation, from its first effect to its samples, and what these make of its item."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from synth.errors import SynthError
from synth.flows import Flow
from synth.items import Item, Outcome, Sample
from synth.replies import Failure
from synth.requests import Request
from synth.running.asking import Asker, UnaskableError, class_and_place
from synth.running.checking import Checker
from synth.store.packing import short
from synth.verdicts import Check

MOST_EFFECTS: Final = 100_000
"""Of one flow; more than that is a flow that never ends."""


@dataclass(kw_only=True)
class Concluded:
    """What became of an item. verifiers: kinds and versions that its verdicts came from. again: a request failed that
    another run may ask again."""

    outcome: Outcome = Outcome.PENDING
    reason: str = ""
    samples: list[Sample] = field(default_factory=list)
    verifiers: dict[str, str] = field(default_factory=dict)
    again: bool = False

    @property
    def verifiers_text(self) -> str:
        return json.dumps(self.verifiers, sort_keys=True)


class _ItemError(Exception):
    """What makes a failed item: `stage: error`, without any text of prompt or reply."""


async def converse(flow: Flow, item: Item, task: int, asker: Asker, checker: Checker) -> Concluded:
    """Let a flow have what it wants until it ends. What it or a verifier raises makes a failed item, and never ends
    the run.

    Raises StoppedError where it wants what is not asked any more, and SynthError for a teacher that there is not.
    """
    concluded, answers = Concluded(), None
    try:
        for _ in range(MOST_EFFECTS):
            effect, samples = _next(flow, answers)
            if samples is not None:
                concluded.samples = _sound(samples, item)
                concluded.outcome, concluded.reason = outcome_of(concluded.samples)
                return concluded
            answers = await _answered(effect, (task, item.id), asker, checker, concluded)
        raise _ItemError("flow: more effects than any flow has")
    except _ItemError as error:
        concluded.outcome, concluded.reason, concluded.samples = Outcome.FAILED, short(str(error)), []
        return concluded
    finally:
        with suppress(Exception):
            flow.close()


def _next(flow: Flow, answers: Any) -> tuple[Any, Any]:
    """The next effect, or what the flow returned."""
    try:
        return flow.send(answers), None
    except StopIteration as end:
        return None, () if end.value is None else end.value
    except SynthError as error:
        raise _ItemError(f"flow: {error}") from None
    except Exception as error:
        raise _ItemError(f"flow: {class_and_place(error)}") from None


async def _answered(
    effect: Any, place: tuple[int, str], asker: Asker, checker: Checker, concluded: Concluded
) -> Sequence[Any]:
    """Replies or verdicts for an effect, in its order."""
    if not isinstance(effect, Sequence):
        raise _ItemError(f"flow: it yields {type(effect).__name__}, not requests or checks")
    if all(isinstance(one, Request) for one in effect):
        try:
            answers = await asker.answers(effect, *place)
        except UnaskableError as error:
            raise _ItemError(f"flow: a request that is no JSON ({error})") from None
        concluded.again |= any(isinstance(one, Failure) and not one.final for one in answers)
        return answers
    if not all(isinstance(one, Check) for one in effect):
        raise _ItemError("flow: it yields something else than requests or checks")
    try:
        for kind in {check.kind for check in effect}:
            concluded.verifiers[kind] = checker.version(kind)
        return await checker.verdicts(effect)
    except SynthError as error:
        raise _ItemError(f"verify: {error}") from None
    except sqlite3.Error:
        raise
    except Exception as error:
        raise _ItemError(f"verify: {class_and_place(error)}") from None


def _sound(samples: Any, item: Item) -> list[Sample]:
    """The samples, which are this item's and numbered apart."""
    if not isinstance(samples, Sequence) or not all(isinstance(one, Sample) for one in samples):
        raise _ItemError("flow: it returns something else than samples")
    if any(one.item != item.id for one in samples):
        raise _ItemError("flow: it returns a sample of another item")
    if len({one.number for one in samples}) < len(samples):
        raise _ItemError("flow: it returns two samples of one number")
    if any(one.outcome is Outcome.PENDING for one in samples):
        raise _ItemError("flow: it returns a pending sample")
    return list(samples)


def outcome_of(samples: Sequence[Sample]) -> tuple[Outcome, str]:
    """Accepted where any sample is; else rejected where any is, with the most frequent reason; else failed."""
    for outcome in (Outcome.ACCEPTED, Outcome.REJECTED, Outcome.FAILED):
        reasons = Counter(one.reason for one in samples if one.outcome is outcome)
        if reasons:
            return outcome, "" if outcome is Outcome.ACCEPTED else reasons.most_common(1)[0][0]
    return Outcome.REJECTED, "flow.no_samples"

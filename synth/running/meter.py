"""What a run has used, what its budget leaves, and why it stopped asking."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping

from synth.replies import Reply
from synth.running.settings import Budget
from synth.teachers.settings import TeacherSettings


class Meter:
    """Counts of this run; those of earlier runs into the same folder count for the budget.

    stopped: why nothing further is asked, "" while it is. Prices of an hour run from when a teacher is opened.
    """

    def __init__(self, budget: Budget, prices: Mapping[str, TeacherSettings], earlier: Mapping[str, float]) -> None:
        self._budget, self._prices, self._earlier = budget, prices, earlier
        self._start = time.monotonic()
        self._opened: dict[str, float] = {}
        self._replies_cost = 0.0
        self.counts: Counter[str] = Counter()
        self.stopped = ""

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start

    @property
    def tokens(self) -> int:
        return self.counts["prompt_tokens"] + self.counts["completion_tokens"]

    @property
    def cost(self) -> float:
        now = time.monotonic()
        hours = {name: (now - since) / 3600 for name, since in self._opened.items()}
        return self._replies_cost + sum(self._prices[name].price_hour * hours[name] for name in hours)

    def opened(self, teacher: str) -> None:
        if teacher in self._prices:
            self._opened[teacher] = time.monotonic()

    def replied(self, teacher: str, reply: Reply) -> None:
        self.counts["replied"] += 1
        self.counts["truncated"] += reply.finish_reason == "length"
        self.counts["prompt_tokens"] += reply.prompt_tokens
        self.counts["completion_tokens"] += reply.completion_tokens
        if teacher in self._prices:
            self._replies_cost += self._prices[teacher].cost(reply.prompt_tokens, reply.completion_tokens)

    def stop(self, reason: str) -> None:
        self.stopped = self.stopped or reason

    def may_send(self) -> bool:
        """Whether one more request fits the budget; once not, never again in this run."""
        if self.stopped:
            return False
        used = {"requests": self.counts["sent"], "tokens": self.tokens, "cost": self.cost, "seconds": self.seconds}
        for name, amount in used.items():
            bound = getattr(self._budget, name)
            if bound is not None and amount + self._earlier.get(name, 0.0) >= bound:
                self.stop(f"budget.{name}")
                return False
        return True

"""What teachers were asked for and at what price, by task, teacher and temperature, and what ought to alarm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from synth.store import Store
from synth.store.items import CONCLUDED, CURRENT

TRUNCATION_ALARM: Final = 0.02
"""Share of replies that were cut; what is cut is the hard part (reference: small limits silently collapse scores)."""

LAST_KEY: Final = "substr(samples.keys, -16)"


@dataclass(frozen=True, kw_only=True)
class Teaching:
    """Of a task, a teacher and a temperature (to a tenth). seconds: of requests, summed; cost: by the prices of tokens.
    accepted: samples whose last request was such. length_bias: mean tokens of their replies over the mean of all."""

    task: str
    teacher: str
    temperature: float
    replies: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    seconds: float
    cost: float
    truncated: int
    samples: int
    accepted: int
    accepted_tokens: int

    @property
    def truncated_share(self) -> float:
        return self.truncated / self.replies if self.replies else 0.0

    @property
    def length_bias(self) -> float | None:
        """Below 1: the longer replies are what is lost."""
        if not self.accepted or not self.completion_tokens:
            return None
        return (self.accepted_tokens / self.accepted) / (self.completion_tokens / self.replies)

    def per_accepted(self) -> dict[str, float | None]:
        """tokens, cost and seconds of an accepted sample; None while there is none."""
        spent = {
            "tokens": float(self.prompt_tokens + self.completion_tokens), "cost": self.cost, "seconds": self.seconds,
        }  # fmt: skip
        return {name: amount / self.accepted if self.accepted else None for name, amount in spent.items()}

    def plain(self) -> dict[str, Any]:
        return asdict(self) | {
            "truncated_share": self.truncated_share, "length_bias": self.length_bias,
            "per_accepted": self.per_accepted(),
        }  # fmt: skip


def _prices(teachers: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Of a million tokens of prompts and of replies, by teacher, as the last run's settings say."""
    return {name: (one.get("price_prompt", 0.0), one.get("price_completion", 0.0)) for name, one in teachers.items()}


def teaching_of(store: Store) -> tuple[Teaching, ...]:
    """By task, teacher and temperature, with the prices of the last run."""
    connection, prices = store.connection, _prices(store.runs.settings().get("teachers", {}))
    made = {
        tuple(row[:3]): row[3:]
        for row in connection.execute(
            "SELECT tasks.name, teachers.name, round(replies.temperature, 1), count(*), "
            "sum(samples.outcome = 'accepted'), "
            "sum(CASE WHEN samples.outcome = 'accepted' THEN completion_tokens ELSE 0 END) "
            "FROM samples JOIN items ON items.task = samples.task AND items.item = samples.item JOIN tasks ON "
            f"tasks.id = samples.task JOIN requests ON requests.key = {LAST_KEY} JOIN replies ON replies.request = "
            f"requests.id JOIN teachers ON teachers.id = requests.teacher WHERE {CURRENT} AND {CONCLUDED} "
            "GROUP BY 1, 2, 3"
        )
    }
    told = []
    for task, teacher, temperature, *sums in connection.execute(
        "SELECT tasks.name, teachers.name, round(replies.temperature, 1), count(*), sum(prompt_tokens), "
        "sum(completion_tokens), sum(cached_tokens), sum(seconds), sum(finish_reason = 'length') FROM replies "
        "JOIN requests ON requests.id = request JOIN tasks ON tasks.id = requests.task "
        "JOIN teachers ON teachers.id = requests.teacher GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
    ):
        replies, prompt, completion, cached, seconds, truncated = sums
        per_prompt, per_completion = prices.get(teacher, (0.0, 0.0))
        samples, accepted, accepted_tokens = made.get((task, teacher, temperature), (0, 0, 0))
        told.append(
            Teaching(
                task=task, teacher=teacher, temperature=temperature, replies=replies, prompt_tokens=prompt,
                completion_tokens=completion, cached_tokens=cached, seconds=seconds, truncated=truncated,
                cost=(prompt * per_prompt + completion * per_completion) / 1e6, samples=samples, accepted=accepted,
                accepted_tokens=accepted_tokens,
            )
        )  # fmt: skip
    return tuple(told)


def alarms_of(teaching: tuple[Teaching, ...]) -> tuple[str, ...]:
    """Of each task and teacher whose replies are cut too often, over all temperatures."""
    truncated: Counter[tuple[str, str]] = Counter()
    replies: Counter[tuple[str, str]] = Counter()
    for one in teaching:
        truncated[one.task, one.teacher] += one.truncated
        replies[one.task, one.teacher] += one.replies
    return tuple(
        f"{task}: {truncated[task, teacher] / count:.1%} of {teacher}'s replies are cut at max_tokens, over "
        f"{TRUNCATION_ALARM:.0%}: what is cut is the hard part; raise max_tokens or choose another finish policy"
        for (task, teacher), count in sorted(replies.items())
        if truncated[task, teacher] > TRUNCATION_ALARM * count
    )

"""The plan: a closed form from (seed, step, rank) to the tokens that are trained on."""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import numpy as np

from train.feed.accounts import Account, account_of
from train.feed.packing import Overflow
from train.feed.schedule import Weight
from train.feed.segments import Method, PlanError, Segment, epochs_by_domain, whole_weights
from train.feed.spans import Spans
from train.feed.stages import Occurrences, Stage, occurrences, spans_of
from train.feed.stream import Stream, TokenIndex

__all__ = ["Occurrences", "Plan", "PlanError"]

FORMAT = "gristmill-plan-1"
BLOCK_TOKENS = 1 << 16


class Plan:
    """Which tokens of which documents fill which row of which step: computed where it is asked for, never listed.

    The same for any world size, worker, prefetch and history of questions. Each domain is one endless stream of tokens
    (train.feed.stream), cut into sequences (train.feed.sources), which a mixture deals out (train.feed.mixture).
    Settings may change at any step: each domain goes on where it was. A plan never changes; `change` gives another.
    """

    def __init__(self, index: TokenIndex, state: Mapping[str, Any], streams: tuple[Stream, ...]) -> None:
        self.index, self._state, self._streams = index, dict(state), streams
        self._stages: list[Stage] = []
        self.domains = tuple(stream.domain.name for stream in streams)

    @classmethod
    def new(
        cls,
        shards: TokenIndex,
        *,
        weights: Mapping[str, Weight] | None = None,
        sequence_tokens: int,
        batch_sequences: int,
        seed: int,
        packing: Method = "concat",
        max_epochs: float | Mapping[str, float | None] | None = None,
        held_out: float = 0.0,
        block_tokens: int = BLOCK_TOKENS,
        window_sequences: int | None = None,
        slack: float = 0.005,
        overflow: Overflow = "split",
    ) -> Plan:
        """A plan from its first step on.

        weights: share of sequences, and so of tokens, by domain; 0 leaves one out; None = as many as it has tokens. In
            each prefix of the plan a domain's count is within one sequence of its share.
        sequence_tokens: targets a row. batch_sequences: rows a step, over all ranks.
        packing: "concat" puts documents one after another, and each token is a target once but for first ones; rows
            have no padding. "best_fit" keeps documents whole where they fit a row: windows of the stream, of
            window_sequences rows each, are packed by best-fit decreasing into a number of rows that is known
            beforehand, `slack` more than their tokens need. overflow: what happens to a piece that then fits no row:
            "split" over the largest gaps (nothing is lost), "crop" to the largest gap, or "drop".
        max_epochs: of a domain, or of each: a domain ends after exactly that many, and its share goes to the others in
            proportion. None = endless.
        held_out: share of each domain's tokens that is never trained on: its last documents, which as documents are
            ordered by a hash is a random sample. 0 <= held_out < 1.
        block_tokens: what is shuffled: blocks of the stream keep their inner order, whatever the sequence length.

        Raises PlanError.
        """
        if not 0 <= held_out < 1:
            raise PlanError(f"held_out: {held_out} is no share to hold out; it is at least 0 and below 1")
        if not isinstance(block_tokens, int) or not 1 <= block_tokens <= 1 << 40:
            raise PlanError(f"block_tokens: {block_tokens}; a whole number from 1 to 2^40")
        state = {
            "format": FORMAT,
            "seed": int(seed),
            "block_tokens": block_tokens,
            "held_out": held_out,
            "shards": shards.digest,
            "tokenizer": shards.tokenizer_digest,
        }
        plan = cls(shards, state, _streams(shards, state))
        tokens = plan.tokens
        if not tokens:
            raise PlanError("shards: they hold no token; there is nothing to train on")
        return plan._with(
            Segment(
                step=0,
                weights=whole_weights(weights, tokens),
                batch_sequences=batch_sequences,
                sequence_tokens=sequence_tokens,
                packing=packing,
                window_sequences=window_sequences,
                slack=slack,
                overflow=overflow,
                max_epochs=epochs_by_domain(max_epochs, tokens),
            )
        )

    @classmethod
    def of(cls, shards: TokenIndex, state: Mapping[str, Any]) -> Plan:
        """The plan that a state records. Raises PlanError where the state is none, or of other tokens."""
        if state.get("format") != FORMAT:
            raise PlanError(f"plan: format {state.get('format')!r}, where {FORMAT!r} can be read")
        for what, found in (("tokenizer", shards.tokenizer_digest), ("shards", shards.digest)):
            if state.get(what) != found:
                raise PlanError(
                    f"plan: made for the {what} with digest {state.get(what)}, not {found}; give the tokens it was "
                    "made for"
                )
        head = {key: value for key, value in state.items() if key != "segments"}
        try:
            plan = cls(shards, head, _streams(shards, head))
            for segment in [Segment(**record) for record in state["segments"]]:
                plan = plan._with(segment)
        except (KeyError, TypeError) as error:
            raise PlanError(f"plan: not a whole state ({error}); give one that state() made") from error
        return plan

    def state(self) -> dict[str, Any]:
        """All that a plan is besides its token shards, as JSON: about 1 kB a segment."""
        return {**self._state, "segments": [stage.segment.record() for stage in self._stages]}

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan.of, (self.index, self.state())

    def change(self, at_step: int, **changes: Any) -> Plan:
        """The plan with other settings from a step on; all before stays as it was.

        changes: weights, batch_sequences, sequence_tokens, packing, window_sequences, slack, overflow, max_epochs. Each
        domain keeps its cursor, so nothing is lost or repeated. What a best-fit window had not yet given is packed
        anew, in the new way. Raises PlanError, also for a step before the last change.
        """
        last = self._stages[-1]
        if at_step < last.segment.step:
            raise PlanError(f"at_step: {at_step} is before step {last.segment.step}, from which on the plan is settled")
        if self.steps is not None and at_step > self.steps:
            raise PlanError(f"at_step: {at_step} is past the plan's end at step {self.steps}; raise max_epochs earlier")
        return self._with(last.segment.changed(operator.index(at_step), self.tokens, changes))

    def _with(self, segment: Segment) -> Plan:
        plan = Plan(self.index, self._state, self._streams)
        last = self._stages[-1] if self._stages else None
        plan._stages = [*self._stages, Stage.of(self._streams, segment, last)]
        return plan

    @property
    def tokens(self) -> dict[str, int]:
        """Tokens of an epoch by domain, without what is held out."""
        return {stream.domain.name: stream.tokens for stream in self._streams}

    @property
    def steps(self) -> int | None:
        """How many steps there are until all epochs have ended; the last may have fewer rows. None = endless."""
        return self._stages[-1].steps

    def segment(self, step: int) -> Segment:
        """The settings at a step."""
        return self._stage_at(step).segment

    def _stage_at(self, step: int) -> Stage:
        if step < 0 or (self.steps is not None and step >= self.steps):
            has = "and on" if self.steps is None else f"to {self.steps - 1}"
            raise PlanError(f"step: {step} is not in the plan, which has steps 0 {has}")
        return self._stages[bisect_right(self._stages, step, key=lambda stage: stage.segment.step) - 1]

    def batch(self, step: int, rank: int = 0, world_size: int = 1) -> Spans:
        """The rows of a step that a rank takes: floor(rank G / world_size) to floor((rank + 1) G / world_size) of G.

        G is batch_sequences, fewer in the last step of a plan that ends. Raises PlanError for a step outside the plan.
        """
        if not 0 <= rank < world_size:
            raise PlanError(f"rank: {rank} of {world_size}; it is between 0 and world_size - 1")
        stage = self._stage_at(step)
        first = stage.sequence(step)
        rows = stage.sequence(step + 1) - first
        begin, end = rank * rows // world_size, (rank + 1) * rows // world_size
        return spans_of([(stage, first + begin, first + end)])

    def sequences(self, first: int, count: int) -> Spans:
        """Any sequences of the plan, as far as their sequence_tokens is one. Raises PlanError."""
        parts = self._parts(first, first + count)
        if sum(stop - start for _, start, stop in parts) != count:
            raise PlanError(f"sequences: {first} to {first + count} are not all in the plan")
        if len({stage.segment.sequence_tokens for stage, _, _ in parts}) > 1:
            raise PlanError(
                f"sequences: sequence_tokens changes between {first} and {first + count}; ask for each part"
            )
        if not parts:
            return spans_of([(self._stages[-1], first, first)])
        return spans_of(parts)

    def _parts(self, first: int, stop: int) -> list[tuple[Stage, int, int]]:
        """Sequences first .. stop by the stages that they belong to; what lies behind the plan's end is left out."""
        found = []
        for stage, after in zip(self._stages, [*self._stages[1:], None], strict=True):
            end = stage.mixture.stop if after is None else after.first
            start, upto = max(first, stage.first), min(stop, end)
            if start < upto:
                found.append((stage, start, upto))
        return found

    def first_sequence(self, step: int) -> int:
        """The number, in the whole plan, of a step's first sequence; of the end, for the step behind the last."""
        if self.steps is not None and step == self.steps:
            return self._stages[-1].mixture.stop
        return self._stage_at(step).sequence(step)

    def _range(self, first_step: int, last_step: int) -> list[tuple[Stage, int, int]]:
        if not 0 <= first_step <= last_step:
            raise PlanError(f"steps: {first_step} to {last_step}; the first comes before the last")
        return self._parts(self.first_sequence(first_step), self.first_sequence(last_step))

    def account(self, first_step: int, last_step: int) -> dict[str, Account]:
        """What became of the tokens of steps first_step .. last_step - 1, by domain, exactly. Reads no token.

        Takes about as long as to plan those steps. Tokens that a window crops or drops are counted where it begins.
        """
        found = {name: Account() for name in self.domains}
        for stage, start, stop in self._range(first_step, last_step):
            before, after = stage.mixture.used(start), stage.mixture.used(stop)
            for number in np.flatnonzero(after > before).tolist():
                source = stage.mixture.sources[number]
                found[self.domains[number]] += account_of(source, int(before[number]), int(after[number]))
        return found

    def consumed(self, step: int) -> dict[str, int]:
        """Tokens of its endless stream that each domain has given, or lost, before a step; over `tokens`: epochs."""
        sequence = self.first_sequence(step)
        stage = self._stages[-1] if step == self.steps else self._stage_at(step)
        used = stage.mixture.used(sequence).tolist()
        sources = zip(self.domains, stage.mixture.sources, used, strict=True)
        return {name: source.consumed(count) for name, source, count in sources}

    def shares(self, first_step: int, last_step: int) -> dict[str, float]:
        """The share of the sequences of steps first_step .. last_step - 1 that each domain should have by its weights.

        Where epochs of a domain have ended, by the weights of the others.
        """
        wanted, total = np.zeros(len(self.domains)), 0
        for stage, start, stop in self._range(first_step, last_step):
            wanted, total = wanted + stage.mixture.wanted(start, stop), total + stop - start
        return dict(zip(self.domains, (wanted / max(1, total)).tolist(), strict=True))

    def positions(self, shard: int, start: int, stop: int, *, until_step: int) -> Occurrences:
        """Which sequences of the steps below until_step hold tokens start .. stop of a shard: "who saw this document?"

        A token that is repeated as context counts where it is not repeated. Costs a few lookups an epoch, and the
        packing of a window where windows are packed. Raises PlanError for a shard that is not in the plan.
        """
        number = next((n for n, s in enumerate(self._streams) if s.from_shard(shard, 0) is not None), None)
        if number is None:
            raise PlanError(f"shard: {shard} has no tokens in the plan")
        token = self._streams[number].from_shard(shard, start)
        assert token is not None
        found = occurrences(self._range(0, until_step), number, token, token + stop - start)
        return found.shifted(start - token)


def _streams(index: TokenIndex, state: Mapping[str, Any]) -> tuple[Stream, ...]:
    return tuple(
        Stream.of(index, number, seed=state["seed"], held_out=state["held_out"], block_tokens=state["block_tokens"])
        for number in range(len(index.domains))
    )

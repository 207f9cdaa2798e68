"""The audit finds what is planted, and nothing where nothing is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shards.store import write_json
from tests.train.feed.made import make_tokens
from train.feed.auditing import audit, audit_run
from train.feed.findings import Audit
from train.feed.ledger import Ledger, LedgerError
from train.feed.loader import Loader
from train.feed.plan import Plan, PlanError
from train.feed.seen import find_document
from train.feed.token_shards import TokenShards

Lines = list[dict[str, Any]]
STEPS = 12


class Made:
    """A run in a folder: two ranks from step 0 to 7, a crash, three ranks from step 6 to the end."""

    def __init__(self, folder: Path) -> None:
        random = np.random.default_rng(3)
        lengths = {name: [random.integers(0, 60, 30).tolist() for _ in range(2)] for name in "abc"}
        self.folder, self.tokens = folder, make_tokens(folder / "t", lengths)
        self.ledger = folder / "ledger"
        shards = TokenShards.open(self.tokens)
        weights = {"a": 1, "b": 2, "c": 0.5}
        self.plan = Plan.new(
            shards, weights=weights, sequence_tokens=32, batch_sequences=6, seed=5, held_out=0.1, packing="best_fit"
        )
        self.plan = self.plan.change(9, weights={"a": 2, "b": 1, "c": 1}, batch_sequences=4)
        write_json(str(folder / "plan.json"), {"plan": self.plan.state(), "tokens": list(shards.folders)})
        self.train(1, 2, 0, 7, shards, closes=False)
        self.train(2, 3, 6, STEPS, shards, closes=True)

    def train(self, attempt: int, ranks: int, start: int, stop: int, shards: TokenShards, *, closes: bool) -> None:
        for rank in range(ranks):
            loader = Loader(self.plan, shards, start_step=start, stop_step=stop, rank=rank, world_size=ranks)
            ledger = Ledger.open(
                str(self.ledger), rank=rank, world_size=ranks, plan=self.plan, start_step=start, attempt=attempt
            )
            for batch in loader:
                ledger.applied(batch)
                if batch.step % 4 == 3:
                    ledger.checkpoint(batch.step + 1, f"checkpoints/step-{batch.step + 1:08d}")
            if closes:
                ledger.close()
            ledger.abandon()

    def audit(self, **settings: Any) -> Audit:
        return audit(str(self.ledger), self.plan, TokenShards.open(self.tokens), **settings)

    def edit(self, attempt: int, rank: int, change: Callable[[Lines], Lines]) -> None:
        path = self.ledger / f"attempt-{attempt:05d}-rank-{rank:05d}.jsonl"
        lines = change([json.loads(line) for line in path.read_text().splitlines()])
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def kinds(found: Audit) -> list[str]:
    return [problem.kind for problem in found.problems]


def at(step: int) -> Callable[[dict[str, Any]], bool]:
    return lambda line: line.get("step") == step and "digest" in line


def test_a_run_that_was_resumed_on_other_ranks_is_whole(made: Made) -> None:
    found = made.audit(verify="all")
    assert found.problems == ()
    assert (found.first_step, found.stop_step, found.applied_steps, found.verified_steps) == (0, 12, 12, 12)
    assert (found.skipped, found.unfinished_step, found.same_plan) == ({}, None, True)
    assert [(one.attempt, one.world_size, one.start_step, one.closed) for one in found.attempts] == [
        (1, 2, 0, None),
        (2, 3, 6, 12),
    ]
    consumed = made.plan.consumed(12)
    for domain in found.domains:
        epoch = made.plan.tokens[domain.name]
        assert domain.tokens == consumed[domain.name]
        assert sum(domain.times.values()) == epoch
        assert domain.epochs == pytest.approx(domain.tokens / epoch)
        assert abs(domain.share - domain.wanted) * sum(one.sequences for one in found.domains) < 2
        account = found.accounts[domain.name]
        assert account.tokens == domain.tokens + account.cropped + account.dropped
        assert account.tokens == account.trained + account.unpredicted + account.cropped + account.dropped
        assert account.slots == account.trained + account.unpredicted + account.context + account.padding
    told = list(found.lines())
    account = found.accounts["a"]
    assert f"a, as planned: {account.tokens:,} tokens = {account.trained:,} targets + " in "\n".join(told)
    assert told[-1] == "nothing is lost, nothing is repeated"
    assert json.loads(json.dumps(found.to_json()))["ok"] is True


def test_a_planted_loss_of_a_ranks_rows_is_found(made: Made) -> None:
    made.edit(2, 1, lambda lines: [line for line in lines if not at(8)(line)])
    problem, *more = made.audit().problems
    assert more == []
    assert (problem.kind, problem.steps, problem.attempt, problem.rank, problem.sequences) == (
        "loss",
        (8, 9),
        2,
        1,
        (50, 52),
    )
    assert problem.told == "step 8: sequences 50 to 52 were not recorded by rank 1 of attempt 2, or any other"
    assert made.audit(steps=range(8)).ok
    assert not made.audit(steps=range(8, 9)).ok


def test_planted_losses_of_whole_steps_are_found_as_one(made: Made) -> None:
    for rank in range(3):
        made.edit(2, rank, lambda lines: [line for line in lines if not (at(7)(line) or at(8)(line))])
    problem, *more = made.audit().problems
    assert more == []
    assert (problem.kind, problem.steps, problem.sequences) == ("loss", (7, 9), (42, 54))
    assert problem.told == "steps 7 to 9: sequences 42 to 54 were not recorded by any rank"


def test_a_loss_at_the_end_is_found_where_the_run_ended_in_order(made: Made) -> None:
    for rank in range(3):
        made.edit(2, rank, lambda lines: [line for line in lines if not at(11)(line)])
    assert [(problem.kind, problem.steps) for problem in made.audit().problems] == [("loss", (11, 12))]


def test_a_last_step_that_only_some_ranks_have_is_unfinished_while_the_run_goes_on(made: Made) -> None:
    for rank in range(3):
        made.edit(2, rank, lambda lines: lines[:-1])
    made.edit(2, 2, lambda lines: [line for line in lines if not at(11)(line)])
    found = made.audit()
    assert (found.problems, found.unfinished_step, found.applied_steps) == ((), 11, 12)
    made.edit(2, 2, lambda lines: [line for line in lines if not at(10)(line)])
    assert [(problem.kind, problem.steps) for problem in made.audit().problems] == [("loss", (10, 11))]


def test_an_attempt_whose_ledger_is_gone_is_a_loss(made: Made) -> None:
    for rank in range(2):
        (made.ledger / f"attempt-00001-rank-{rank:05d}.jsonl").unlink()
    problem, *more = made.audit().problems
    assert more == []
    assert (problem.kind, problem.steps, problem.sequences) == ("loss", (0, 6), (0, 36))


def test_a_step_that_was_applied_twice_is_found(made: Made) -> None:
    made.edit(2, 0, lambda lines: [one for line in lines for one in [line] * (1 + at(7)(line))])
    found = made.audit()
    assert [(problem.kind, problem.steps, problem.sequences) for problem in found.problems] == [
        ("repeat", (7, 8), (42, 44))
    ]
    assert max(max(domain.times) for domain in found.domains) > max(
        max(domain.times) for domain in made.audit(steps=range(7)).domains
    )


def test_a_sequence_that_was_fed_twice_is_found(made: Made) -> None:
    shards = TokenShards.open(made.tokens)
    wrong = Loader(made.plan, shards, rank=0, world_size=3).batch(7)

    def feed_again(lines: Lines) -> Lines:
        again = Ledger._step(wrong)
        return [again if at(7)(line) else line for line in lines]

    made.edit(2, 1, feed_again)
    found = made.audit()
    assert sorted(kinds(found)) == ["loss", "repeat"]
    assert {problem.sequences for problem in found.problems} == {(42, 44), (44, 46)}
    assert all(problem.steps == (7, 8) for problem in found.problems)


def test_rows_of_another_step_are_strange_and_a_loss(made: Made) -> None:
    made.edit(2, 1, lambda lines: [line | {"first": 0} if at(7)(line) else line for line in lines])
    assert sorted(kinds(made.audit())) == ["loss", "strange"]


@pytest.mark.parametrize(("verify", "found"), [("all", ["digest"]), ("sample", ["digest"]), ("none", [])])
def test_a_digest_of_other_tokens_is_found(made: Made, verify: str, found: list[str]) -> None:
    made.edit(2, 1, lambda lines: [line | {"digest": "0" * 16} if at(7)(line) else line for line in lines])
    audited = made.audit(verify=verify)
    assert kinds(audited) == found
    if found:
        assert "step 7, rank 1 of attempt 2: fed was 0000000000000000, plan and shards give" in audited.problems[0].told


def test_a_shard_that_changed_since_is_found(made: Made) -> None:
    path = Path(made.tokens, "data/part-00002-of-00006.bin")
    data = path.read_bytes()
    path.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    found = made.audit()
    assert kinds(found) == ["shard"]
    assert f"{path}: digest" in found.problems[0].told
    path.unlink()
    found = made.audit()
    assert "no such file" in found.problems[0].told
    assert found.accounts == {}


def test_another_plan_is_found(made: Made) -> None:
    shards = TokenShards.open(made.tokens)
    other = Plan.new(shards, sequence_tokens=32, batch_sequences=6, seed=6, held_out=0.1)
    found = audit(str(made.ledger), other, shards)
    assert not found.same_plan
    assert "digest" in kinds(found)
    later = made.plan.change(12, batch_sequences=9)
    found = audit(str(made.ledger), later, shards)
    assert (found.ok, found.same_plan) == (True, False)


def test_steps_that_were_passed_over_are_told_and_not_counted(made: Made) -> None:
    for rank in range(3):
        made.edit(2, rank, lambda lines: [line | {"skipped": "spike"} if at(7)(line) else line for line in lines])
    found = made.audit()
    assert (found.problems, found.skipped, found.applied_steps) == ((), {7: "spike"}, 11)
    total = sum(domain.tokens for domain in found.domains)
    assert total < sum(made.plan.consumed(12).values())
    made.edit(2, 0, lambda lines: [{"step": 7, "skipped": "spike"} if at(7)(line) else line for line in lines])
    assert made.audit().ok
    made.edit(2, 1, lambda lines: [{k: v for k, v in line.items() if k != "skipped"} for line in lines])
    assert kinds(made.audit()) == ["divided"]


def test_a_rollback_within_an_attempt_is_no_repeat(made: Made) -> None:
    def roll_back(lines: Lines) -> Lines:
        steps = {line["step"]: line for line in lines if "digest" in line}
        again = [steps[7] | {"skipped": "spike"}, steps[8]]
        return [one for line in lines for one in [line, *([{"resume": 7}, *again] if at(8)(line) else [])]]

    for rank in range(3):
        made.edit(2, rank, roll_back)
    found = made.audit()
    assert (found.problems, found.skipped) == ((), {7: "spike"})


def test_a_document_is_followed_to_steps_and_checkpoints(made: Made) -> None:
    shards = TokenShards.open(made.tokens)
    held: dict[tuple[int, int], dict[int, int]] = {}
    for step in range(12):
        spans = made.plan.batch(step)
        for shard, row, count, repeats in zip(spans.shard, spans.document, spans.count, spans.repeats, strict=True):
            steps = held.setdefault((int(shard), int(row)), {})
            steps[step] = steps.get(step, 0) + int(count) - int(repeats)
    late = next(key for key, steps in held.items() if min(steps) >= 8)
    early = next(key for key, steps in held.items() if min(steps) < 4)
    never = next(
        (shard, row)
        for shard in range(6)
        for row in range(30)
        if (shard, row) not in held and shards.document_at(shard, 0)[0] >= 0
    )
    names = [f"checkpoints/step-{step:08d}" for step in (4, 8, 12)]
    for (shard, row), unaware in ((late, names[:2]), (early, []), (never, names)):
        told = shards.documents(shard).column("id")[row].as_py()
        document = made.audit(document=told).document
        assert document is not None
        steps = held.get((shard, row), {})
        assert document.steps == steps
        assert list(document.unaware) == unaware
        for path in names:
            wanted = sum(tokens for step, tokens in steps.items() if step < int(path[-8:]))
            assert document.checkpoints.get(path, 0) == wanted
        assert document.abandoned == ()
    with pytest.raises(ValueError, match="document: none is in none of 6 shards"):
        made.audit(document="none")


def test_a_document_is_known_by_the_beginning_that_is_its_own(tmp_path: Path) -> None:
    shards = TokenShards.open(make_tokens(tmp_path / "t", {"alone": [[5]], "many": [[3] * 12]}))
    told, places = find_document(shards, "alon")
    assert (told, [place[:2] for place in places]) == ("alone-0-0", [(0, 0)])
    assert find_document(shards, "many-1-1")[0] == "many-1-1"  # another one's beginning, too
    with pytest.raises(ValueError, match=r"12 ids begin with many-1- \(many-1-0, many-1-1, many-1-10, \.\.\.\)"):
        find_document(shards, "many-1-")
    with pytest.raises(ValueError, match="document: alo is in none of 2 shards"):
        find_document(shards, "alo")


def test_a_runs_folder_says_where_its_tokens_are(made: Made) -> None:
    assert audit_run(str(made.folder), verify="all").ok
    moved = made.folder / "moved"
    Path(made.tokens).rename(moved)
    assert audit_run(str(made.folder), tokens=str(moved)).ok
    with pytest.raises(LedgerError, match=r"no plan.json of a run"):
        audit_run(str(moved))
    with pytest.raises(PlanError):
        audit_run(str(made.folder), tokens=make_tokens(made.folder / "other", {"a": [[99]]}))


def test_ranges_that_are_none_are_refused(made: Made) -> None:
    with pytest.raises(ValueError, match=r"steps: .* an unbroken range"):
        made.audit(steps=range(0, 9, 2))

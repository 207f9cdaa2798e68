"""Runs against a simulated teacher: nothing is asked twice, every row ends somewhere, and the account adds up."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import resource
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.synth_run import Answering, killed_again_and_again, known, settings, write_rows
from synth.errors import SynthError
from synth.flows import Desk, Flow
from synth.items import Item, Outcome, Sample, SampleKind
from synth.replies import Failure, Reply, TeacherError
from synth.requests import Identity, Request
from synth.running import Account, Synth, run, status, verify
from synth.running.works import validated
from synth.simulator import Faults, Latency, Rule, SimulatorProcess, SimulatorSettings, Speech
from synth.store import Store, to_parquet
from synth.verdicts import Check, Verdict
from synth.verdicts import Outcome as Says

FEW = 60


@pytest.fixture(scope="module")
def simulator() -> Iterator[SimulatorProcess]:
    with SimulatorProcess(SimulatorSettings(known=known(), speech=Speech(words=5))) as process:
        yield process


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    write_rows(tmp_path / "rows.jsonl", FEW)
    return tmp_path / "rows.jsonl"


def synth(url: str, rows: Path, task: dict[str, Any] | None = None, **more: Any) -> Synth:
    told = settings(url, rows, in_flight=32, **(task or {})) | more
    made: Synth = validated(Synth, told, "")
    return made


def with_task(task: Any, rows: Path, **more: Any) -> Synth:
    return Synth(tasks=(task,), rows={"files": [str(rows)]}, **more)  # type: ignore[arg-type]


class Scripted:
    """A teacher in this process, for faults that a server cannot be made to have at a given moment."""

    identity = Identity(model="scripted")
    capacity = 4

    def __init__(self, say: Callable[[Request], str]) -> None:
        self.say, self.asked, self.opened, self.in_flight, self.peak = say, Counter[str](), 0, 0, 0

    async def open(self) -> None:
        self.opened += 1

    async def close(self) -> None: ...

    async def generate(self, request: Request) -> Reply:
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        await asyncio.sleep(0.001)
        self.in_flight -= 1
        key = request.key(self.identity)
        self.asked[key] += 1
        return Reply(key=key, text=self.say(request), finish_reason="stop", prompt_tokens=3, completion_tokens=5)


async def check_equal(check: Check) -> Verdict:
    said = f"boxed{{{check.gold}}}" in check.answer or check.answer == check.gold
    return Verdict(outcome=Says.RIGHT if said else Says.WRONG)


def version_one(kind: str) -> str:
    return "1"


VERIFIED = {"check": check_equal, "version": version_one}


def total(account: Account, task: str = "answering") -> int:
    return account.items[task].total


def test_a_second_run_asks_nothing_and_concludes_the_same(
    simulator: SimulatorProcess, rows: Path, tmp_path: Path
) -> None:
    told = synth(simulator.url, rows)
    first = run(told, str(tmp_path / "out"))
    asked = sum(simulator.stats()["attempts"].values())
    again = run(told, str(tmp_path / "out"))
    assert sum(simulator.stats()["attempts"].values()) == asked
    assert (first.items, first.samples, first.requests) == (again.items, again.samples, again.requests)
    assert (first.items["answering"].accepted, first.requests.sent) == (FEW, 4 * FEW)
    assert status(str(tmp_path / "out")).plain() == again.plain()


def test_more_rollouts_ask_for_the_missing_ones_alone(simulator: SimulatorProcess, rows: Path, tmp_path: Path) -> None:
    run(synth(simulator.url, rows, {"rollouts": 2, "max_tokens": 200}), str(tmp_path / "out"))
    before = sum(simulator.stats()["attempts"].values())
    account = run(synth(simulator.url, rows, {"rollouts": 3, "max_tokens": 200}), str(tmp_path / "out"))
    assert sum(simulator.stats()["attempts"].values()) - before == FEW
    assert account.samples["answering"].accepted == 3 * FEW


def test_verdicts_anew_need_no_teacher_and_change_conclusions(
    simulator: SimulatorProcess, rows: Path, tmp_path: Path
) -> None:
    told = synth(simulator.url, rows, {"verifier": "math", "max_tokens": 199})
    first = run(told, str(tmp_path / "out"), **VERIFIED)  # type: ignore[arg-type]
    assert first.samples["answering"].rejected["verify.wrong"] > FEW
    asked = sum(simulator.stats()["attempts"].values())

    async def all_right(check: Check) -> Verdict:
        return Verdict(outcome=Says.RIGHT)

    unreachable = synth("http://127.0.0.1:9", rows, {"verifier": "math", "max_tokens": 199})
    again = verify(unreachable, str(tmp_path / "out"), check=all_right, version=version_one)
    assert again.samples["answering"].rejected == {}
    assert again.samples["answering"].accepted == 4 * FEW
    assert sum(simulator.stats()["attempts"].values()) == asked


def test_a_verifier_of_another_version_concludes_again_from_stored_replies(rows: Path, tmp_path: Path) -> None:
    teacher = Scripted(lambda request: "0")
    given: Counter[str] = Counter()

    async def counted(check: Check) -> Verdict:
        given[check.key("")] += 1
        return await check_equal(check)

    told = with_task(Answering(rollouts=2, verifier="math"), rows)
    for version, verdicts in (("1", 1), ("1", 1), ("2", 2)):
        run(told, str(tmp_path / "out"), teachers={"teacher": teacher}, check=counted, version=lambda kind: version)  # noqa: B023
        assert set(given.values()) == {verdicts}
    assert set(teacher.asked.values()) == {1}


def test_equal_requests_in_flight_are_asked_once_and_the_capacity_is_kept(tmp_path: Path) -> None:
    with (tmp_path / "rows.jsonl").open("w") as file:
        file.writelines(json.dumps({"id": f"r{at}", "prompt": "the same"}) + "\n" for at in range(50))
    teacher = Scripted(lambda request: "so")
    account = run(with_task(Answering(), tmp_path / "rows.jsonl"), str(tmp_path / "out"), teachers={"teacher": teacher})
    assert account.samples["answering"].accepted == 200
    assert account.requests.sent == 4
    assert set(teacher.asked.values()) == {1}
    assert teacher.peak <= teacher.capacity


def lose_nothing(folder: Path, rows: int, in_flight: int, timeout_seconds: float) -> None:
    """A tenth of refusals and resets, and a fiftieth of hangs."""
    write_rows(folder / "rows.jsonl", rows)
    faults = Faults(too_many=0.034, server_error=0.033, reset=0.033, hang=0.02)
    with SimulatorProcess(SimulatorSettings(known=known(), faults=faults, speech=Speech(words=5))) as failing:
        told = settings(failing.url, folder / "rows.jsonl", in_flight=in_flight)
        told["teachers"]["teacher"]["timeout_seconds"] = timeout_seconds
        account = run(validated(Synth, told, ""), str(folder / "out"))
        stats = failing.stats()
    assert sum(stats["faults"].values()) > 0.08 * 4 * rows
    assert set(stats["replies"].values()) == {1}
    assert (account.items["answering"].accepted, account.samples["answering"].accepted) == (rows, 4 * rows)
    assert account.requests.replied == 4 * rows


def test_faults_and_hangs_of_servers_lose_no_row(tmp_path: Path) -> None:
    lose_nothing(tmp_path, FEW, 32, 0.7)


@pytest.mark.heavy
def test_faults_and_hangs_during_five_thousand_requests_lose_no_row(tmp_path: Path) -> None:
    lose_nothing(tmp_path, 1250, 256, 2.0)


def test_a_failed_request_is_told_and_asked_again_by_the_next_run_alone(rows: Path, tmp_path: Path) -> None:
    down = True

    class Failing(Scripted):
        async def generate(self, request: Request) -> Reply:
            reply = await super().generate(request)
            if down and "row 7:" in request.messages[0]["content"]:
                raise TeacherError(Failure(key=reply.key, stage="wait", error="HTTP 503", attempts=8))
            return reply

    teacher = Failing(lambda request: "so")
    told = with_task(Answering(), rows)
    first = run(told, str(tmp_path / "out"), teachers={"teacher": teacher})
    assert first.items["answering"].failed == {"teacher.wait": 1}
    assert (first.requests.sent, first.requests.failed) == (4 * FEW, 4)
    down = False
    second = run(told, str(tmp_path / "out"), teachers={"teacher": teacher})
    assert (second.items["answering"].accepted, second.requests.failed) == (FEW, 0)
    assert Counter(teacher.asked.values()) == {1: 4 * FEW - 4, 2: 4}


def test_a_teacher_that_is_gone_is_not_asked_for_ever_and_what_is_left_is_pending(rows: Path, tmp_path: Path) -> None:
    class Gone(Scripted):
        async def generate(self, request: Request) -> Reply:
            raise TeacherError(Failure(key=request.key(self.identity), stage="send", error="no connection"))

    account = run(
        with_task(Answering(), rows, stop_after_failures=8, open_items=4), str(tmp_path / "out"),
        teachers={"teacher": Gone(str)},
    )  # fmt: skip
    assert account.ended == "teacher.teacher"
    assert account.requests.failed < 20
    assert account.items["answering"].pending > FEW - 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hostile:
    """A task whose flows do all that flows must not."""

    name = "hostile"
    version = 1

    def items(self, rows: Iterable[Item]) -> Iterable[Item]:
        return rows

    def flow(self, item: Item, desk: Desk) -> Flow:
        request = Request(messages=({"role": "user", "content": item.prompt},))
        sample = Sample(item=item.id, number=0, kind=SampleKind.DOCUMENT, keys=(), outcome=Outcome.ACCEPTED)
        match item.id:
            case "raises":
                yield [request]
                raise ValueError("a secret text")
            case "number":
                yield 5  # type: ignore[misc]
            case "mixed":
                yield [request, Check(kind="math", gold="1", answer="1")]  # type: ignore[list-item]
            case "unknown kind":
                yield [Check(kind="unknown", gold="1", answer="1")]
            case "verifier dies":
                yield [Check(kind="dies", gold="1", answer="1")]
            case "other's sample":
                return [dataclasses.replace(sample, item="else")]
            case "twice":
                return [sample, sample]
            case "no samples":
                return None  # type: ignore[return-value]
            case "recursion":
                yield from self.flow(item, desk)
            case "not JSON":
                yield [dataclasses.replace(request, messages=({"role": "user", "content": object()},))]
            case "stays":
                try:
                    yield [request]
                except GeneratorExit:
                    yield [request]
            case "empty":
                yield []
        return [sample]


def test_one_hostile_row_never_stops_a_run_and_its_text_is_nowhere(tmp_path: Path) -> None:
    names = ["raises", "number", "mixed", "unknown kind", "verifier dies", "other's sample", "twice", "no samples"]
    names += ["recursion", "not JSON", "stays", "empty", "good", "\U0001f600 emoji", "a'; DROP TABLE items; --"]
    with (tmp_path / "rows.jsonl").open("w") as file:
        file.writelines(json.dumps({"id": name, "prompt": "a secret \ud800 text\0"}) + "\n" for name in names)

    async def check(told: Check) -> Verdict:
        if told.kind == "dies":
            raise OSError("a secret text")
        raise SynthError(f"verifier {told.kind!r}: no such kind")

    account = run(
        with_task(Hostile(), tmp_path / "rows.jsonl"), str(tmp_path / "out"), check=check, version=version_one,
        teachers={"teacher": Scripted(lambda request: "\ud800\0")},
    )  # fmt: skip
    ledger = account.items["hostile"]
    assert (ledger.total, ledger.accepted, ledger.rejected) == (len(names), 5, {"flow.no_samples": 1})
    with Store.open(tmp_path / "out", read_only=True) as store:
        told = {item.id: reason for _, item, outcome, reason in store.items.items() if outcome is Outcome.FAILED}
    assert told["raises"].startswith("flow: ValueError at tests/synth/running/test_synth_run.py:")
    assert told["verifier dies"].startswith("verify: OSError at ")
    assert told["unknown kind"] == "verify: verifier 'unknown': no such kind"
    assert told["recursion"].startswith("flow: RecursionError at")
    assert set(told) == set(names[:11]) - {"no samples", "stays"}
    assert "secret" not in json.dumps(account.plain()) + json.dumps(told)


def test_duplicate_ids_are_rejected_by_name_and_the_first_one_stays(
    simulator: SimulatorProcess, tmp_path: Path
) -> None:
    with (tmp_path / "rows.jsonl").open("w") as file:
        for name in ("a", "b", "a", "c", "a"):
            file.write(json.dumps({"id": name, "prompt": f"[item q1] {name}"}) + "\n")
    told = synth(simulator.url, tmp_path / "rows.jsonl")
    for _ in range(2):
        account = run(told, str(tmp_path / "out"))
        assert (total(account), account.items["answering"].accepted) == (5, 3)
        assert account.items["answering"].rejected == {"row.duplicate_id": 2}
    with Store.open(tmp_path / "out", read_only=True) as store:
        places = {place for (place,) in store.connection.execute("SELECT place FROM refused_rows")}
    assert {place.removeprefix(str(tmp_path)) for place in places} == {"/rows.jsonl:3", "/rows.jsonl:5"}


@pytest.mark.parametrize(
    ("budget", "bound"),
    [
        ({"requests": 40}, 40),
        ({"tokens": 900}, 80),
        ({"cost": 0.5}, 80),
    ],
)
def test_a_budget_stops_asking_and_what_is_left_is_pending(
    budget: dict[str, Any], bound: int, simulator: SimulatorProcess, rows: Path, tmp_path: Path
) -> None:
    told = synth(simulator.url, rows, budget=budget)
    teacher = dataclasses.replace(told.teachers["teacher"], price_prompt=1000.0, price_completion=1000.0)
    told = dataclasses.replace(told, teachers={"teacher": teacher})
    account = run(told, str(tmp_path / "out"))
    assert account.ended == f"budget.{next(iter(budget))}"
    assert 20 <= account.requests.replied <= bound
    assert account.items["answering"].pending > 0
    assert total(account) == FEW
    # The same budget again leaves nothing to ask; without one the rest is asked, and nothing twice.
    assert run(told, str(tmp_path / "out")).requests.sent == account.requests.sent
    after = run(synth(simulator.url, rows), str(tmp_path / "out"))
    assert (after.items["answering"].accepted, after.requests.sent) == (FEW, 4 * FEW)


def test_an_allocation_follows_the_pilots_and_is_stored_once(
    simulator: SimulatorProcess, rows: Path, tmp_path: Path
) -> None:
    task = {"verifier": "math", "pilot_rollouts": 4, "max_tokens": 198}
    told = synth(simulator.url, rows, task)
    account = run(told, str(tmp_path / "out"), **VERIFIED)  # type: ignore[arg-type]
    with Store.open(tmp_path / "out", read_only=True) as store:
        pilots = store.connection.execute("SELECT trials, right, rollouts FROM allocations").fetchall()
    assert len(pilots) == FEW
    assert all(rollouts == (8 if right < 2 else 5) for _, right, rollouts in pilots)
    assert account.requests.sent == sum(rollouts for _, _, rollouts in pilots)

    async def never(check: Check) -> Verdict:
        return Verdict(outcome=Says.WRONG)

    verify(told, str(tmp_path / "out"), check=never, version=version_one)
    with Store.open(tmp_path / "out", read_only=True) as store:
        assert store.connection.execute("SELECT trials, right, rollouts FROM allocations").fetchall() == pilots


def test_distillation_with_shares_keeps_its_budget_exactly(
    simulator: SimulatorProcess, rows: Path, tmp_path: Path
) -> None:
    told = settings(simulator.url, rows, in_flight=32)
    told["tasks"] = [{"kind": "distill", "rollouts": {"allocation": "hbn", "mean_rollouts": 8, "pilot": 4}}]
    told["rows"]["values"] = {"verifier": "math"}
    account = run(validated(Synth, told, ""), str(tmp_path / "out"), **VERIFIED)  # type: ignore[arg-type]
    assert account.requests.sent == 8 * FEW
    assert account.items["distill"].accepted > FEW / 2
    with Store.open(tmp_path / "out", read_only=True) as store:
        given = store.connection.execute("SELECT trials, rollouts FROM allocations").fetchall()
    assert {trials for trials, _ in given} == {4}
    assert min(rollouts for _, rollouts in given) >= 5


def test_pilots_that_a_budget_stopped_allocate_nothing(simulator: SimulatorProcess, rows: Path, tmp_path: Path) -> None:
    task = {"pilot_rollouts": 4, "max_tokens": 197}
    account = run(synth(simulator.url, rows, task, budget={"requests": 100}), str(tmp_path / "out"))
    assert (account.items["answering"].pending, account.requests.sent) == (FEW, 100)
    account = run(synth(simulator.url, rows, task), str(tmp_path / "out"))
    assert (account.items["answering"].accepted, account.requests.sent) == (FEW, 5 * FEW)


def test_changed_and_lost_rows_are_seen(simulator: SimulatorProcess, rows: Path, tmp_path: Path) -> None:
    told = synth(simulator.url, rows)
    run(told, str(tmp_path / "out"))
    lines = rows.read_text().splitlines()
    rows.write_text("\n".join([lines[0].replace("what is it", "what was it"), *lines[1:-5]]))
    account = run(told, str(tmp_path / "out"))
    assert (total(account), account.requests.sent) == (FEW - 5, 4 * FEW + 4)
    assert account.samples["answering"].accepted == 4 * (FEW - 5)


def test_truncation_alarms_above_two_percent_only(tmp_path: Path) -> None:
    for cut, alarms in ((2, 0), (3, 1)):
        write_rows(tmp_path / "rows.jsonl", 100)
        rule = Rule(match=rf"row [0-{cut - 1}]:", reply=("far too long " * 50,))
        with SimulatorProcess(SimulatorSettings(rules=(rule,), otherwise="short")) as server:
            told = synth(server.url, tmp_path / "rows.jsonl", {"rollouts": 1, "max_tokens": 100})
            account = run(told, str(tmp_path / f"out{cut}"))
        assert (account.teaching[0].truncated, len(account.alarms)) == (cut, alarms)


def test_an_unknown_teacher_another_model_and_a_second_run_are_the_users_to_mend(
    simulator: SimulatorProcess, rows: Path, tmp_path: Path
) -> None:
    with pytest.raises(SynthError, match="a task asks 'other'; the recipe has teacher"):
        run(synth(simulator.url, rows, {"teacher": "other"}), str(tmp_path / "a"))
    with pytest.raises(SynthError, match="no server answers"):
        run(synth("http://127.0.0.1:9", rows), str(tmp_path / "b"))
    with Store.open(tmp_path / "c"), pytest.raises(SynthError, match="writes here"):
        run(synth(simulator.url, rows), str(tmp_path / "c"))


def test_the_account_of_a_run_that_is_under_way_adds_up(
    simulator: SimulatorProcess, rows: Path, tmp_path: Path
) -> None:
    told = synth(simulator.url, rows, {"rollouts": 40, "max_tokens": 195}, progress_seconds=0.02)
    seen: list[int] = []
    run(told, str(tmp_path / "out"), progress=lambda _: seen.append(status(str(tmp_path / "out")).requests.replied))
    assert len(set(seen)) > 2
    assert seen == sorted(seen)


def test_a_full_disk_is_told_in_a_line_and_the_next_run_goes_on(rows: Path, tmp_path: Path) -> None:
    teacher = Scripted(lambda request: "so")
    told = with_task(Answering(), rows)

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    try:
        with pytest.raises(SynthError, match=r"(disk I/O error|disk is full); check the room"):
            run(told, str(tmp_path / "out"), teachers={"teacher": teacher})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    account = run(told, str(tmp_path / "out"), teachers={"teacher": teacher})
    assert account.items["answering"].accepted == FEW


def test_it_runs_within_a_running_event_loop(simulator: SimulatorProcess, rows: Path, tmp_path: Path) -> None:
    async def notebook() -> Account:
        return run(synth(simulator.url, rows), str(tmp_path / "out"))

    assert asyncio.run(notebook()).items["answering"].accepted == FEW


def kill_again_and_again(tmp_path: Path, *, requests: int, times: int, in_flight: int) -> None:
    write_rows(tmp_path / "rows.jsonl", requests // 4)
    faults = Faults(too_many=0.034, server_error=0.033, reset=0.033)
    latency = Latency(first_token_seconds=0.03)
    simulated = SimulatorSettings(known=known(), faults=faults, latency=latency, speech=Speech(words=5))
    written = []
    for out, kills in (("killed", times), ("undisturbed", 0)):
        with SimulatorProcess(simulated) as server:
            told = settings(server.url, tmp_path / "rows.jsonl", in_flight=in_flight)
            starts = killed_again_and_again(tmp_path, server, told, tmp_path / out, kills=kills, requests=requests)
            replies = server.stats()["replies"]
        assert starts == kills + 1
        assert len(replies) == requests
        assert sum(replies.values()) - len(replies) <= kills * in_flight
        account = status(str(tmp_path / out))
        assert (account.ended, account.requests.replied, account.requests.pending) == ("done", requests, 0)
        assert account.samples["answering"].accepted == requests
        with Store.open(tmp_path / out, read_only=True) as store:
            to_parquet(store, str(tmp_path / f"{out}-parquet"))
        parts = [path for part in ("samples", "items") for path in (tmp_path / f"{out}-parquet" / part).iterdir()]
        written.append([path.read_bytes() for path in sorted(parts)])
    assert written[0] == written[1]


def test_a_run_that_is_killed_gives_the_same_set_and_generates_only_what_was_in_flight_again(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, requests=400, times=2, in_flight=16)


@pytest.mark.heavy
def test_twenty_kills_during_five_thousand_requests(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, requests=5000, times=20, in_flight=64)

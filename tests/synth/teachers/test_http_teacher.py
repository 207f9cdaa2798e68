"""The client against a simulated teacher that fails in every way that servers fail: nothing is lost, nothing twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest

from synth.errors import SynthError
from synth.replies import Failure, Reply, TeacherError
from synth.requests import Request, Sampling, seed_of
from synth.simulator import Faults, Known, Latency, Rule, SimulatorProcess, SimulatorSettings, Speech, decode
from synth.teachers import TeacherSettings, open_teacher, opened
from synth.teachers.http_teacher import HttpTeacher

KNOWN = {f"q{at}": Known(gold=str(at), skill=0.5) for at in range(100)}
BRIEF = Speech(words=5)


def simulator(**settings: Any) -> SimulatorProcess:
    return SimulatorProcess(SimulatorSettings(**({"known": KNOWN, "speech": BRIEF} | settings)))


def teacher(*urls: str, **settings: Any) -> HttpTeacher:
    told = {"model": "simulated", "urls": urls, "backoff_seconds": 0.01, "timeout_seconds": 20.0} | settings
    made = open_teacher(TeacherSettings(**told))
    assert isinstance(made, HttpTeacher)
    return made


def requests(count: int, **more: Any) -> list[Request]:
    return [
        Request(messages=({"role": "user", "content": f"[item q{at % 100}] ?"},), rollout=at // 100, **more)
        for at in range(count)
    ]


async def all_of(asked: HttpTeacher, wanted: Sequence[Request]) -> list[Reply | Failure]:
    async def one(request: Request) -> Reply | Failure:
        try:
            return await asked.generate(request)
        except TeacherError as error:
            return error.failure

    async with opened(asked):
        return await asyncio.gather(*(one(request) for request in wanted))


def ask(asked: HttpTeacher, wanted: Sequence[Request]) -> list[Reply | Failure]:
    return asyncio.run(all_of(asked, wanted))


def test_a_reply_holds_all_that_was_told() -> None:
    with simulator() as server:
        asked = teacher(server.url)
        [request] = requests(1, temperature=0.7)
        [reply] = ask(asked, [request])
    assert isinstance(reply, Reply)
    assert reply.key == request.key(asked.identity)
    assert (reply.seed, reply.temperature, reply.attempts) == (seed_of(reply.key), 0.7, 1)
    assert reply.ids is not None
    assert decode(list(reply.ids)) == reply.text
    assert reply.completion_tokens == len(reply.ids)
    assert reply.prompt_ids is not None
    assert reply.prompt_tokens == len(reply.prompt_ids)
    assert reply.finish_reason == "stop"
    assert reply.seconds > 0


def test_the_same_request_has_the_same_reply_and_another_rollout_another() -> None:
    with simulator() as server:
        once, again = (ask(teacher(server.url), requests(200)) for _ in range(2))
    assert [reply.text for reply in once] == [reply.text for reply in again]  # type: ignore[union-attr]
    assert once[0].text != once[100].text  # type: ignore[union-attr]


def test_what_only_vllm_takes_is_sent_to_vllm_alone() -> None:
    with simulator(vllm=False) as server:
        [reply] = ask(teacher(server.url), requests(1))
    assert isinstance(reply, Reply)
    assert (reply.ids, reply.prompt_ids) == (None, None)


def test_prompts_tools_schemas_logprobs_and_split_reasoning() -> None:
    rules = (
        Rule(match="judge", probabilities={"A": 0.9, "B": 0.1}),
        Rule(match="tool", tool="add", reply=('{"a": 1}',)),
        Rule(match="think", reasoning="because", reply=("so",)),
        Rule(match="filtered", reply=("",), finish_reason="content_filter"),
    )
    user = [({"role": "user", "content": text},) for text in ("judge", "tool", "think", "give JSON", "filtered")]
    schema = {"type": "object", "properties": {"score": {"type": "integer"}}}
    wanted = [
        Request(messages=user[0], sampling=Sampling(logprobs=2)),
        Request(messages=user[1], tools=({"type": "function", "function": {"name": "add"}},)),
        Request(messages=user[2]),
        Request(messages=user[3], sampling=Sampling(json_schema=schema)),
        Request(messages=user[4]),
        Request(prompt="[item q3] goes on", sampling=Sampling(logprobs=1, stop=("never",), top_k=5, min_p=0.1)),
    ]
    with simulator(rules=rules) as server:
        judged, called, thought, guided, filtered, raw = ask(teacher(server.url), wanted)
    assert isinstance(judged, Reply)
    assert '"logprob": -0.105' in judged.logprobs
    assert isinstance(called, Reply)
    assert '"name": "add"' in called.tool_calls
    assert (thought.text, thought.reasoning) == ("so", "because")  # type: ignore[union-attr]
    assert guided.text == '{"score": 1}'  # type: ignore[union-attr]
    assert (filtered.text, filtered.finish_reason) == ("", "content_filter")  # type: ignore[union-attr]
    assert "boxed" in raw.text  # type: ignore[union-attr]
    assert raw.ids  # type: ignore[union-attr]


def test_a_tenth_of_refusals_and_resets_and_hangs_lose_no_request_and_generate_none_twice() -> None:
    faults = Faults(too_many=0.034, server_error=0.033, reset=0.033, hang=0.02)
    with simulator(faults=faults, latency=Latency(first_token_seconds=0.02)) as server:
        asked = teacher(server.url, max_in_flight=256, timeout_seconds=3.0, timeout_seconds_per_token=0.0)
        replies = ask(asked, requests(2000))
        stats = server.stats()
    assert all(isinstance(reply, Reply) for reply in replies)
    assert len({reply.key for reply in replies}) == 2000
    assert len(stats["replies"]) == 2000
    assert set(stats["replies"].values()) == {1}
    assert set(stats["faults"]) == {"too_many", "server_error", "reset", "hang"}
    assert 150 < sum(stats["faults"].values()) < 350
    assert stats["given_up"] >= stats["faults"]["hang"]
    assert stats["in_flight"] == 0


def test_torn_bodies_empty_ones_and_hangs_are_asked_again() -> None:
    faults = Faults(torn=0.1, empty=0.1, null=0.1, hang=0.1, reset=0.1)
    with simulator(faults=faults) as server:
        asked = teacher(server.url, max_in_flight=64, timeout_seconds=1.5, timeout_seconds_per_token=0.0)
        replies = ask(asked, requests(200))
        stats = server.stats()
    assert all(isinstance(reply, Reply) and "boxed" in reply.text for reply in replies)
    assert all(stats["faults"][name] for name in ("torn", "empty", "null", "hang", "reset"))
    assert set(stats["replies"].values()) == {1}


def test_five_thousand_requests_are_as_many_in_flight_as_the_cap_and_no_more() -> None:
    with simulator(latency=Latency(first_token_seconds=0.4)) as server:
        replies = ask(teacher(server.url, max_in_flight=512), requests(5000))
        stats = server.stats()
    assert all(isinstance(reply, Reply) and reply.attempts == 1 for reply in replies)
    assert stats["peak_in_flight"] == 512
    assert (len(stats["replies"]), set(stats["replies"].values())) == (5000, {1})


def test_a_server_that_bears_less_is_asked_for_less() -> None:
    with simulator(bears=16, latency=Latency(first_token_seconds=0.02)) as server:
        replies = ask(teacher(server.url, max_in_flight=256, attempts=12), requests(1000))
        stats = server.stats()
    assert all(isinstance(reply, Reply) for reply in replies)
    assert stats["faults"]["over_what_it_bears"] < 800, (
        "some 420 on the way down from 256, then a fifth of what is sent"
    )


def test_time_runs_from_when_a_request_is_sent_and_not_from_when_it_began_to_wait() -> None:
    with simulator(latency=Latency(first_token_seconds=0.3)) as server:
        asked = teacher(server.url, max_in_flight=1, timeout_seconds=1.5, timeout_seconds_per_token=0.0)
        replies = ask(asked, requests(6))
    assert all(isinstance(reply, Reply) and reply.attempts == 1 for reply in replies)


def test_time_is_as_long_as_the_tokens_need() -> None:
    settings = TeacherSettings(model="m", urls=("http://a",), timeout_seconds=1.0, timeout_seconds_per_token=0.5)
    assert settings.timeout_of(10) == 6.0
    with simulator(faults=Faults(hang=1.0, most=0)) as server:
        asked = teacher(server.url, timeout_seconds=0.1, timeout_seconds_per_token=0.05, attempts=2)
        [failure] = ask(asked, requests(1, sampling=Sampling(max_tokens=4)))
    assert failure == Failure(key=failure.key, stage="wait", error="no reply within 0.3 s", attempts=2)


def test_retry_after_is_waited_for() -> None:
    with simulator(faults=Faults(too_many=1.0, most=1, retry_after_seconds=1)) as server:
        start = time.monotonic()
        [reply] = ask(teacher(server.url), requests(1))
    assert isinstance(reply, Reply)
    assert reply.attempts == 2
    assert time.monotonic() - start > 1.0


def test_retries_come_to_an_end_and_what_is_told_is_no_text() -> None:
    with simulator(faults=Faults(server_error=1.0, most=0)) as server:
        [failure] = ask(teacher(server.url, attempts=3), requests(1))
    assert isinstance(failure, Failure)
    assert (failure.stage, failure.attempts, failure.final) == ("wait", 3, False)
    assert failure.error in ("HTTP 500", "HTTP 503")


def test_what_is_refused_twice_is_final() -> None:
    with simulator(context_tokens=50) as server:
        [failure] = ask(teacher(server.url), requests(1, sampling=Sampling(max_tokens=51)))
        stats = server.stats()
    told = "HTTP 400: the prompt and max_tokens do not fit the model's context"
    assert failure == Failure(key=failure.key, stage="prompt", error=told, attempts=2, final=True)
    assert list(stats["attempts"].values()) == [2]


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (Request(prompt="x", sampling=Sampling(json_schema={})), "json_schema is empty"),
        (Request(), "neither messages nor a prompt"),
        (Request(messages=({"role": "user", "content": "x"},), continues=True), "the last message is not"),
    ],
)
def test_what_no_server_should_be_asked_is_refused_here(request_: Request, told: str) -> None:
    with simulator() as server:
        [failure] = ask(teacher(server.url), [request_])
        assert server.stats()["attempts"] == {}
    assert isinstance(failure, Failure)
    assert told in failure.error
    assert (failure.stage, failure.attempts, failure.final) == ("refused", 0, True)


def test_replicas_share_and_one_that_ends_loses_nothing() -> None:
    async def work(first: SimulatorProcess, second: SimulatorProcess) -> list[Reply | Failure]:
        asked = teacher(first.url, second.url, max_in_flight=64)
        running = asyncio.create_task(all_of(asked, requests(1000)))
        while not (await asyncio.to_thread(first.stats))["replies"]:
            await asyncio.sleep(0.02)
        await asyncio.to_thread(first.stop)
        return await running

    slow = Latency(first_token_seconds=0.05)
    with simulator(latency=slow) as first, simulator(latency=slow) as second:
        replies = asyncio.run(work(first, second))
        share = len(second.stats()["replies"])
    assert all(isinstance(reply, Reply) for reply in replies)
    assert 500 < share <= 1000


def test_a_server_that_comes_back_is_asked_again_and_an_outage_ends_the_waiting() -> None:
    async def work() -> None:
        first = simulator()
        first.start()
        asked = teacher(first.url, outage_seconds=20.0)
        wanted = requests(3)
        async with opened(asked):
            assert (await asked.generate(wanted[0])).attempts == 1
            first.stop()
            waiting = asyncio.create_task(asked.generate(wanted[1]))
            await asyncio.sleep(0.3)
            again = SimulatorProcess(SimulatorSettings(known=KNOWN, port=first.port))
            await asyncio.to_thread(again.start)
            assert (await waiting).attempts >= 2
            again.stop()
        patient = teacher(first.url, outage_seconds=0.2)
        with simulator(port=first.port) as third:
            await patient.open()
            third.stop()
        with pytest.raises(TeacherError, match=r"send: no server was healthy for 0.2 s"):
            await patient.generate(wanted[2])
        await patient.close()
        await patient.close()

    asyncio.run(work())


def test_a_request_that_is_given_up_gives_its_place_back() -> None:
    async def work(url: str) -> None:
        asked = teacher(url, max_in_flight=1)
        async with opened(asked):
            given_up = asyncio.create_task(asked.generate(requests(1)[0]))
            await asyncio.sleep(0.1)
            given_up.cancel()
            await asyncio.gather(given_up, return_exceptions=True)
            assert (await asyncio.wait_for(asked.generate(requests(2)[1]), 5)).attempts == 1

    with simulator(latency=Latency(first_token_seconds=0.5)) as server:
        asyncio.run(work(server.url))


def test_what_a_user_can_mend_is_told_when_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    with simulator(api_key="secret") as server:
        with pytest.raises(SynthError, match=r"^api_key_variable: http\S+ does not take the key \(none given\)"):
            ask(teacher(server.url), [])
        with pytest.raises(SynthError, match=r"^api_key_variable: SIMULATOR_KEY holds no key; export it"):
            ask(teacher(server.url, api_key_variable="SIMULATOR_KEY"), [])
        monkeypatch.setenv("SIMULATOR_KEY", "secret")
        [reply] = ask(teacher(server.url, api_key_variable="SIMULATOR_KEY"), requests(1))
        assert isinstance(reply, Reply)
        with pytest.raises(SynthError, match=r"^model: http.* does not serve another, but simulated$"):
            ask(teacher(server.url, api_key_variable="SIMULATOR_KEY", model="another"), [])
        url = server.url
    with pytest.raises(SynthError, match=r"^urls: no server answers at http"):
        ask(teacher(url), [])
    with pytest.raises(SynthError, match=r"^max_in_flight: 100000000 needs 100000128 open files"):
        ask(teacher(url, max_in_flight=100_000_000), [])

"""Who takes the next request: limits that halve and grow, the least loaded, the ill, the waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from synth.teachers.http_replicas import ILL_AFTER, Limit, OutageError, Replica, Replicas


def of(count: int, cap: int, healthy: bool = True, outage_seconds: float = 10.0, most: int = 100) -> Replicas:
    async def check(url: str) -> bool:
        return healthy

    replicas = [Replica(url=str(at), limit=Limit(cap=cap)) for at in range(count)]
    return Replicas(replicas=replicas, max_in_flight=most, outage_seconds=outage_seconds, check=check)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 10))


def test_a_limit_halves_only_when_more_than_a_fifth_of_a_window_is_refused() -> None:
    limit = Limit(cap=100)
    for _ in range(20):
        limit.count(0, refused=True)
    assert limit.value == 100
    limit.count(0, refused=True)
    assert (limit.value, limit.generation) == (50, 1)
    for _ in range(100):
        limit.count(0, refused=True)
    assert limit.value == 50, "refusals of what was sent before the halving halve nothing again"


def test_a_limit_grows_with_each_success_to_its_cap_and_never_falls_below_one() -> None:
    limit = Limit(cap=8)
    for _ in range(50):
        limit.count(limit.generation, refused=True)
    assert limit.value == 1
    values = []
    for _ in range(40):
        limit.count(limit.generation, refused=False)
        values.append(limit.value)
    assert values == sorted(values)
    assert (values[0], values[8], values[-1]) == (2, 4, 8)


def test_one_refusal_in_ten_leaves_a_limit_where_it_is() -> None:
    limit = Limit(cap=512)
    for at in range(10_000):
        limit.count(limit.generation, refused=at % 10 == 0)
    assert limit.value == 512


def test_requests_go_to_the_least_loaded_and_elsewhere_than_where_they_failed() -> None:
    async def work() -> None:
        replicas = of(3, cap=10)
        taken = [await replicas.take() for _ in range(9)]
        assert [one.in_flight for one in replicas.replicas] == [3, 3, 3]
        replicas.release(taken[0], 0, refused=False, failed=False)
        assert await replicas.take(avoid=taken[0]) is not taken[0]
        assert (await of(1, cap=1).take(avoid=None)).url == "0"
        alone = of(1, cap=2)
        assert await alone.take(avoid=alone.replicas[0]) is alone.replicas[0]

    run(work())


def test_what_waits_is_served_in_order_and_what_gives_up_waiting_leaves_no_hole() -> None:
    async def work() -> None:
        replicas = of(2, cap=1)
        first, second = await replicas.take(), await replicas.take()
        waiting = [asyncio.create_task(replicas.take()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        replicas.release(first, 0, refused=False, failed=False)
        assert await waiting[1] is first
        # Given a turn and cancelled before it ran: the turn goes to the next.
        replicas.release(second, 0, refused=False, failed=False)
        waiting[2].cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert await replicas.take() is second

    run(work())


def test_all_replicas_together_keep_within_the_cap() -> None:
    async def work() -> None:
        replicas = of(2, cap=3, most=3)
        for _ in range(3):
            await replicas.take()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(replicas.take(), 0.05)

    run(work())


def test_failures_in_a_row_make_ill_and_a_look_at_its_health_makes_well() -> None:
    async def work() -> None:
        replicas = of(2, cap=100)
        for _ in range(ILL_AFTER):
            replica = replicas.replicas[0]
            replica.in_flight += 1
            replicas._in_flight += 1
            replicas.release(replica, 0, refused=None, failed=True)
        assert not replica.healthy
        assert (await replicas.take()).url == "1"
        await asyncio.sleep(0.05)
        assert replica.healthy
        await replicas.close()

    run(work())


def test_an_outage_ends_the_waiting_and_all_that_comes_later() -> None:
    async def work() -> None:
        replicas = of(1, cap=1, healthy=False, outage_seconds=0.1)
        replicas.ill(replicas.replicas[0])
        with pytest.raises(OutageError):
            await replicas.take()
        with pytest.raises(OutageError):
            await replicas.take()
        await replicas.close()

    run(work())

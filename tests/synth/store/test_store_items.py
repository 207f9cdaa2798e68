"""Items, samples and allocations: replaced as a whole, told in one order, and written as Parquet that DuckDB reads."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from synth.items import Item, Outcome, Sample, SampleKind
from synth.replies import Failure, Reply
from synth.requests import Identity, Request
from synth.store import Store, to_parquet
from synth.store.parquet import CONTENTS, ITEMS, REQUESTS, SAMPLES

OURS, OTHERS = b"settings", b"other settings"


def item(name: str, **more: object) -> Item:
    return Item(id=name, prompt=f"what is {name}?", gold={"value": [1, 2]}, licence="MIT", **more)  # type: ignore[arg-type]


def sample(name: str, number: int, outcome: Outcome = Outcome.ACCEPTED, text: str = "so") -> Sample:
    return Sample(
        item=name, number=number, kind=SampleKind.CONVERSATION, keys=("ab" * 16, "cd" * 16), outcome=outcome,
        reason="" if outcome is Outcome.ACCEPTED else "verify.wrong",
        messages=({"role": "user", "content": "?"}, {"role": "assistant", "content": text}), verdict="right",
        figures={"temperature": 0.7}, facts={"finish": "stop"}, tokens=3,
    )  # fmt: skip


def conclude(store: Store, task: int, name: str, samples: list[Sample], concluded: bytes = OURS) -> None:
    store.items.see(task, item(name), b"content", store.items.find(task, name), 1)
    store.items.conclude(
        task, name, samples, outcome=Outcome.ACCEPTED, reason="", concluded=concluded, verifiers="{}", again=False
    )


def test_samples_come_back_as_they_were_by_task_item_and_number(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        second, first = (store.items.task(name, "kind", OURS) for name in ("second", "first"))
        conclude(store, second, "b", [sample("b", 1), sample("b", 0)])
        conclude(store, second, "a", [sample("a", 0)])
        conclude(store, first, "z", [sample("z", 0, Outcome.REJECTED)])
        told = list(store.samples())
        assert [(task, one.item, one.number) for task, one in told] == [
            ("first", "z", 0), ("second", "a", 0), ("second", "b", 0), ("second", "b", 1),
        ]  # fmt: skip
        assert told[1] == ("second", sample("a", 0))
        assert [one.item for _, one in store.samples(Outcome.REJECTED)] == ["z"]
        [(task, found, made, teachers)] = store.rows(Outcome.REJECTED)
        assert (task, found, made, teachers) == ("first", item("z"), sample("z", 0, Outcome.REJECTED), ())


def test_concluding_again_replaces_all_samples_of_the_item(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        task = store.items.task("t", "kind", OURS)
        conclude(store, task, "a", [sample("a", number) for number in range(4)])
        conclude(store, task, "a", [sample("a", 0, text="other")])
        assert [one for _, one in store.samples()] == [sample("a", 0, text="other")]


def test_what_other_settings_concluded_is_pending_until_it_is_concluded_again(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        task = store.items.task("t", "kind", OURS)
        conclude(store, task, "a", [sample("a", 0)])
        assert store.items.task("t", "kind", OTHERS) == task
        assert list(store.samples()) == []
        assert [outcome for _, _, outcome, _ in store.items.items()] == [Outcome.PENDING]
        conclude(store, task, "a", [sample("a", 0)], concluded=OTHERS)
        assert len(list(store.samples())) == 1


def test_items_that_the_input_lost_are_left_out_once_it_was_read_to_its_end(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        task = store.items.task("t", "kind", OURS)
        for name in "ab":
            conclude(store, task, name, [sample(name, 0)])
        store.items.read_to_end(task, 1)
        store.items.see(task, item("b"), b"content", store.items.find(task, "b"), 2)
        assert len(list(store.samples())) == 2
        store.items.read_to_end(task, 2)
        assert [one.item for _, one in store.samples()] == ["b"]


def test_an_item_whose_content_changed_is_pending(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        task = store.items.task("t", "kind", OURS)
        conclude(store, task, "a", [sample("a", 0)])
        store.items.see(task, item("a", domain="new"), b"other content", store.items.find(task, "a"), 2)
        assert list(store.samples()) == []
        [(_, found, outcome, _)] = store.items.items()
        assert (found.domain, outcome) == ("new", Outcome.PENDING)


def test_an_allocation_is_stored_once(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        task = store.items.task("t", "kind", OURS)
        for name, right in (("b", 1), ("a", 4)):
            store.items.see(task, item(name), b"content", None, 1)
            store.items.tell_pilot(task, name, 4, right)
        assert store.items.unallocated(task) == [("a", 4, 4), ("b", 4, 1)]
        store.items.allocate(task, [("a", 5), ("b", 11)])
        assert store.items.unallocated(task) == []
        assert store.items.pilot(task, "b") == (4, 1, 11)


def test_parquet_has_its_schema_also_when_empty(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        assert to_parquet(store, str(tmp_path / "out")) == dict.fromkeys(
            ("samples", "items", "requests", "contents"), 0
        )
    for name, schema in (("samples", SAMPLES), ("items", ITEMS), ("requests", REQUESTS), ("contents", CONTENTS)):
        assert pq.read_schema(tmp_path / "out" / name / "00000.parquet").equals(schema)


def test_parquet_tells_of_each_request_whether_it_was_replied_to_failed_or_is_pending(tmp_path: Path) -> None:
    identity = Identity(model="m", revision="r")
    with Store.open(tmp_path / "store") as store:
        task = store.items.task("t", "kind", OURS)
        for rollout in range(3):
            request = Request(prompt="asked", rollout=rollout, temperature=0.5, teacher="big")
            key = request.key(identity)
            row = store.answers.ask(key, request, identity, task=task, item="a", run=1)
            if rollout == 0:
                store.answers.reply(row, Reply(key=key, text="so", finish_reason="stop", ids=(1, 2), seed=3), 1)
            if rollout == 1:
                store.answers.fail(row, Failure(key=key, stage="wait", error="HTTP 503"), 1)
        assert to_parquet(store, str(tmp_path / "out")) == {"samples": 0, "items": 0, "requests": 3, "contents": 1}
    found = duckdb.sql(
        f"SELECT rollout, teacher, model, state, error, text, ids, asked ->> 'prompt' FROM "
        f"'{tmp_path}/out/requests/*.parquet' JOIN '{tmp_path}/out/contents/*.parquet' USING (content) ORDER BY rollout"
    ).fetchall()
    assert found == [
        (0, "big", "m", "replied", None, "so", [1, 2], "asked"),
        (1, "big", "m", "failed", "wait: HTTP 503", None, None, "asked"),
        (2, "big", "m", "pending", None, None, None, "asked"),
    ]


def test_parquet_is_the_same_bytes_whatever_order_things_were_concluded_in(tmp_path: Path) -> None:
    names = [f"item {number:03d}" for number in range(300)]
    written = []
    for at, order in enumerate((names, names[::-1])):
        with Store.open(tmp_path / f"store{at}") as store:
            task = store.items.task("t", "kind", OURS)
            for name in order:
                conclude(store, task, name, [sample(name, 0), sample(name, 1, Outcome.REJECTED, text="\ud800 torn")])
            to_parquet(store, str(tmp_path / f"out{at}"))
        written.append([(tmp_path / f"out{at}" / part / "00000.parquet").read_bytes() for part in ("samples", "items")])
    assert written[0] == written[1]
    found = duckdb.sql(
        f"SELECT outcome, count(*), sum(tokens), min(figures['temperature']), "
        f"min(json_extract_string(messages, '$[1].content')) "
        f"FROM '{tmp_path}/out0/samples/*.parquet' GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert found == [("accepted", 300, 900, 0.7, "so"), ("rejected", 300, 900, 0.7, "\ufffd torn")]

"""What is stored comes back as it was, whatever a teacher said; one writer; a writer that is killed loses nothing."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.errors import SynthError
from synth.replies import Failure, Reply
from synth.requests import Identity, Request
from synth.store import Store
from synth.store.packing import pack, pack_ids, pack_keys, unpack, unpack_ids, unpack_keys
from synth.verdicts import Outcome, Verdict

IDENTITY = Identity(model="m", revision="1")
ROOT = Path(__file__).resolve().parents[3]


def request(number: int, rollout: int = 0) -> Request:
    return Request(messages=({"role": "user", "content": f"question {number}"},), rollout=rollout)


def reply(key: str, text: str = "an answer") -> Reply:
    return Reply(
        key=key, text=text, finish_reason="stop", reasoning="because", prompt_ids=(1, 2, 151_000),
        ids=(7, 4_000_000_000), tool_calls="[]", logprobs="[1]", prompt_tokens=3, completion_tokens=2, cached_tokens=1,
        temperature=0.7, seed=9, seconds=0.25, attempts=2, forced=True,
    )  # fmt: skip


def store_one(store: Store, asked: Request, text: str = "an answer", run: int = 1) -> str:
    key = asked.key(IDENTITY)
    row = store.answers.ask(key, asked, IDENTITY, task=1, item="a", run=run)
    store.answers.reply(row, reply(key, text), run)
    return key


def test_a_reply_comes_back_field_by_field_also_from_another_opening(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        key = store_one(store, request(1))
        assert store.answers.find(key) == reply(key)
    with Store.open(tmp_path) as store:
        assert store.answers.find(key) == reply(key)
        assert list(store.answers.replies()) == [reply(key)]


def test_a_second_reply_to_the_same_request_is_not_kept(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        key = store_one(store, request(1), "the first")
        store_one(store, request(1), "the second")
        assert store.answers.find(key) == reply(key, "the first")


def test_contents_and_prompt_ids_of_rollouts_are_stored_once(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        for rollout in range(8):
            store_one(store, request(1, rollout))
        store.answers.forget()
        store_one(store, request(1, 9))
        assert store.connection.execute("SELECT count(*) FROM blobs").fetchone() == (2,)


@given(st.text(alphabet=st.characters(exclude_categories=())))
@settings(max_examples=200)
def test_any_text_is_packed_and_unpacked_as_it_is(text: str) -> None:
    assert unpack(pack(text)) == text
    assert unpack(pack(text * 50)) == text * 50


@given(st.lists(st.integers(min_value=0, max_value=2**32 - 1)))
def test_any_ids_are_packed_and_unpacked_as_they_are(ids: list[int]) -> None:
    assert unpack_ids(pack_ids(ids)) == tuple(ids)
    keys = [f"{number:032x}" for number in ids]
    assert unpack_keys(pack_keys(keys)) == tuple(keys)


def test_a_failure_is_known_to_its_own_run_and_to_all_where_it_is_final(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        key = request(1).key(IDENTITY)
        row = store.answers.ask(key, request(1), IDENTITY, task=1, item="a", run=1)
        assert store.answers.find(key, run=1) is None
        failure = Failure(key=key, stage="wait", error="HTTP 503", attempts=8)
        store.answers.fail(row, failure, 1)
        assert store.answers.find(key, run=1) == failure
        assert store.answers.find(key, run=2) is None
        final = Failure(key=key, stage="prompt", error="too long", attempts=2, final=True)
        store.answers.fail(row, final, 2)
        assert store.answers.find(key, run=3) == final
        assert store.connection.execute("SELECT count(*) FROM failures").fetchone() == (2,)
        store.answers.reply(row, reply(key), 4)
        assert store.answers.find(key, run=5) == reply(key)


def test_a_verdict_is_kept_until_it_is_given_anew(tmp_path: Path) -> None:
    key = "ab" * 16
    with Store.open(tmp_path) as store:
        assert store.answers.verdict(key) is None
        store.answers.judge(key, Verdict(outcome=Outcome.WRONG, reason="value", score=0.5), 1)
        assert store.answers.verdict(key, not_before=2) is None
        store.answers.judge(key, Verdict(outcome=Outcome.RIGHT), 2)
        assert store.answers.verdict(key, not_before=2) == Verdict(outcome=Outcome.RIGHT)


def test_a_second_writer_is_refused_by_name_and_readers_are_not(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        key = store_one(store, request(1))
        store.commit()
        told = subprocess.run(
            [sys.executable, "-c", f"from synth.store import Store; Store.open({str(tmp_path)!r})"],
            check=False, cwd=ROOT, capture_output=True, text=True,
        ).stderr.strip().splitlines()[-1]  # fmt: skip
        assert f"process {os.getpid()} on" in told
        with Store.open(tmp_path, read_only=True) as reader:
            assert reader.answers.find(key) == reply(key)
            with pytest.raises(sqlite3.OperationalError):
                reader.connection.execute("DELETE FROM replies")
    with Store.open(tmp_path):
        pass


def test_another_format_another_file_and_no_store_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SynthError, match="nothing was run here"):
        Store.open(tmp_path, read_only=True)
    with Store.open(tmp_path) as store:
        store.connection.execute("COMMIT")
        store.connection.execute("PRAGMA user_version = 99")
        store.connection.execute("BEGIN")
    with pytest.raises(SynthError, match="has format 99, this version reads 1"):
        Store.open(tmp_path)
    (other := tmp_path / "other").mkdir()
    (other / "store.sqlite").write_bytes(b"no database at all, but some text that is long enough" * 20)
    with pytest.raises(SynthError, match="name the folder of a run"):
        Store.open(other)


WRITER = """
import sys
from synth.store import Store
from test_store_answers import request, store_one
with Store.open(sys.argv[1]) as store:
    for number in range(100_000):
        store_one(store, request(number))
        store.commit()
        print(number, flush=True)
"""


def test_a_writer_that_is_killed_loses_nothing_that_it_committed(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": path},
    ) as writer:  # fmt: skip
        assert writer.stdout is not None
        for line in writer.stdout:
            if (last := int(line)) >= 500:
                os.kill(writer.pid, signal.SIGKILL)
                break
        last = max([last, *map(int, filter(str.strip, writer.stdout))])
    with Store.open(tmp_path) as store:
        assert store.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert all(store.answers.find(request(number).key(IDENTITY)) for number in range(last + 1))

"""Swarms: one tidy table, resumable between and within runs, extendable, with failures as rows."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from pydantic import TypeAdapter

from train.proxies import Proxies, ProxyError, observations, run


def values(table, metric):
    rows = table.filter(pc.field("metric") == metric).to_pylist()
    return {row["run"]: row["value"] for row in rows}


def told(settings, tokens, out, **changes):
    """A settings file for `python -m train.proxies`."""
    plain = TypeAdapter(Proxies).dump_python(settings, mode="json")
    path = Path(out).with_suffix(".json")
    path.write_text(json.dumps({"settings": {**plain, **changes}, "tokens": tokens, "out": str(out)}))
    return [sys.executable, "-m", "train.proxies", str(path)]


@pytest.fixture(scope="module")
def trained(tokens, swarm, tmp_path_factory):
    """A finished swarm that no test changes."""
    out = tmp_path_factory.mktemp("swarm") / "out"
    return str(out), run(swarm(), tokens=tokens, out=str(out))


def test_the_table_has_a_row_for_each_run_and_metric(trained):
    out, table = trained
    rows = table.to_pylist()
    assert {row["run"] for row in rows} == {"tiny-code-seed0", "tiny-prose-seed0"}
    assert {row["status"] for row in rows} == {"done"}
    expected = {"bits_per_byte", "loss", "train_loss"} | {
        f"{kind}/{name}"
        for kind in ("bits_per_byte", "loss")
        for name in ("code", "maths", "prose", "language/eng_Latn", "language/deu_Latn", "language/und")
    }
    for name in {row["run"] for row in rows}:
        assert {row["metric"] for row in rows if row["run"] == name} == expected
    assert all(row["value"] > 0 for row in rows)
    assert pq.read_table(f"{out}/observations.parquet").equals(table)
    assert csv.read_csv(f"{out}/observations.csv").num_rows == table.num_rows
    assert observations(out).equals(table)


def test_rows_say_what_was_trained_on_by_domain(trained):
    _, table = trained
    for row in table.to_pylist():
        weights = [row[f"weight_{name}"] for name in ("code", "maths", "prose")]
        assert sum(weights) == pytest.approx(1.0)
        assert row["weight_maths"] == row["tokens_maths"] == row["epochs_maths"] == 0
        assert sum(row[f"tokens_{name}"] for name in ("code", "maths", "prose")) == row["tokens"]
        for name in ("code", "prose"):
            assert row[f"epochs_{name}"] == row[f"tokens_{name}"] / row[f"unique_tokens_{name}"]
            assert row[f"tokens_{name}"] / row["tokens"] == pytest.approx(row[f"weight_{name}"], abs=0.03)
        assert row["flops"] > 6 * row["tokens"] * row["parameters"] * 0.9


def test_each_domain_is_learnt_better_where_it_weighs_more(trained):
    _, table = trained
    for domain, other in (("code", "prose"), ("prose", "code")):
        told = values(table, f"bits_per_byte/{domain}")
        assert told[f"tiny-{domain}-seed0"] < told[f"tiny-{other}-seed0"]


def test_a_finished_run_leaves_results_and_no_checkpoints(trained):
    out, _ = trained
    assert sorted(os.listdir(f"{out}/runs/tiny-code-seed0")) == ["metrics.jsonl", "result.json"]


def test_further_mixtures_sizes_and_seeds_are_added_and_nothing_is_trained_twice(tokens, swarm, tmp_path):
    out, said = str(tmp_path / "out"), io.StringIO()
    first = run(swarm(), tokens=tokens, out=out)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").rglob("result.json")}
    more = swarm(mixtures={"maths": {"maths": 1.0}}, sizes={"wide": {"layers": 1, "width": 32, "heads": 2}}, seeds=(4,))
    table = run(more, tokens=tokens, out=out, progress=said)
    assert "proxies: 1 runs, 0 of them there already" in said.getvalue()
    assert "1 of 1: wide-maths-seed4" in said.getvalue()
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert set(table["run"].to_pylist()) == {*first["run"].to_pylist(), "wide-maths-seed4"}
    assert table.filter(pc.is_in(table["run"], first["run"])).equals(first)


def test_processes_give_the_same_table_as_one(trained, tokens, swarm, tmp_path):
    table = run(swarm(workers=2), tokens=tokens, out=str(tmp_path / "out"))
    assert table.equals(trained[1])


def test_a_run_that_fails_is_a_row_with_its_error_and_others_go_on(tokens, swarm, tmp_path):
    sizes = {
        "tiny": {"layers": 1, "width": 16, "heads": 2},
        "long": {"layers": 1, "width": 16, "heads": 2, "tokens": 999_424},
    }
    out, said = str(tmp_path / "out"), io.StringIO()
    settings = swarm(sizes=sizes, max_epochs=2.0, mixtures={"code": {"code": 1.0}})
    table = run(settings, tokens=tokens, out=out, progress=said)
    rows = {row["run"]: row for row in table.to_pylist()}
    failed = rows["long-code-seed0"]
    assert (failed["status"], failed["metric"], failed["value"]) == ("failed", None, None)
    assert failed["error"].startswith("max_epochs: leaves ")
    assert failed["weight_code"] == 1.0
    assert rows["tiny-code-seed0"]["status"] == "done"
    assert "2 of 2, 1 failed: long-code-seed0 failed: max_epochs" in said.getvalue()
    said = io.StringIO()
    assert run(settings, tokens=tokens, out=out, progress=said).equals(table)
    assert "2 of them there already" in said.getvalue()
    said = io.StringIO()
    assert run(settings, tokens=tokens, out=out, progress=said, retry_failed=True).equals(table)
    assert "1 of them there already" in said.getvalue()


def test_a_process_that_dies_costs_one_run_which_is_told_and_tried_again(trained, tokens, swarm, tmp_path):
    out = tmp_path / "out"

    def kill_the_first():
        while not list(out.glob("runs/*/checkpoints/*/manifest.json")):
            time.sleep(0.005)
        os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_the_first, daemon=True)
    killer.start()
    table = run(swarm(workers=1, checkpoint_every_steps=4), tokens=tokens, out=str(out))
    killer.join()
    rows = {row["run"]: row for row in table.to_pylist()}
    failed = rows["tiny-code-seed0"]
    assert failed["error"] == "its process ended with signal 9, perhaps out of memory"
    assert (failed["status"], failed["metric"], rows["tiny-prose-seed0"]["status"]) == ("failed", None, "done")
    assert run(swarm(), tokens=tokens, out=str(out)).equals(trained[1])
    assert not multiprocessing.active_children()


def test_killed_at_any_moment_and_run_again_gives_the_same_table(trained, tokens, swarm, tmp_path):
    out = tmp_path / "out"
    command = told(swarm(), tokens, out, workers=1, checkpoint_every_steps=4)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as child:
        deadline = time.monotonic() + 60
        while not list(out.glob("runs/*/checkpoints/*/manifest.json")):
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.005)
        child.send_signal(signal.SIGKILL)
    assert not (out / "observations.parquet").exists()
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr
    table = pq.read_table(out / "observations.parquet")
    assert table.equals(trained[1])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"learning_rate": 0.5}, "learning_rate: 0.5 here, but the runs in "),
        ({"sequence_tokens": 32}, "sequence_tokens: 32 here, but the runs in "),
        ({"sizes": {"tiny": {"layers": 2, "width": 16, "heads": 2}}}, "tiny-code-seed0: "),
        ({"mixtures": {"code": {"code": 1.0}}}, "tiny-code-seed0: "),
    ],
)
def test_runs_of_other_settings_are_not_mixed_into_a_folder(trained, tokens, swarm, changes, told):
    with pytest.raises(ProxyError) as caught:
        run(swarm(**changes), tokens=tokens, out=trained[0])
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)


def test_runs_on_other_tokens_are_not_mixed_into_a_folder(trained, swarm, tmp_path):
    from tests.train.pretrain.made import make_text_tokens, texts_of

    other = make_text_tokens(tmp_path / "t", {name: texts_of(name, 30) for name in ("code", "prose")})
    with pytest.raises(ProxyError, match="its runs were trained on other tokens; use another out"):
        run(swarm(), tokens=other, out=trained[0])


def test_two_swarms_do_not_share_a_folder(trained, tokens, swarm):
    import fcntl

    with open(f"{trained[0]}/.training", "ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ProxyError, match="another swarm is training into"):
            run(swarm(), tokens=tokens, out=trained[0])


def test_an_empty_folder_has_no_observations(tmp_path):
    with pytest.raises(ProxyError, match="holds no run of proxies that has ended"):
        observations(str(tmp_path))


def test_repetition_of_the_target_is_matched_in_the_table(tokens, swarm, tmp_path):
    target = 400_000
    table = run(
        swarm(target_tokens=target, mixtures={"code": {"code": 0.8, "prose": 0.2}}),
        tokens=tokens,
        out=str(tmp_path / "out"),
    )
    whole = run(swarm(mixtures={"code": {"code": 0.8, "prose": 0.2}}), tokens=tokens, out=str(tmp_path / "whole"))
    row, free = table.to_pylist()[0], whole.to_pylist()[0]
    for domain in ("code", "prose"):
        wanted = row[f"weight_{domain}"] * target / free[f"unique_tokens_{domain}"]
        assert row[f"epochs_{domain}"] == pytest.approx(wanted, rel=0.1)
        assert row[f"epochs_{domain}"] > free[f"epochs_{domain}"] * 10


def test_the_command_refuses_a_wrong_file_in_one_line(tmp_path):
    from train.proxies.__main__ import main

    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"settings": {"sizes": {}, "tokens": 5}, "tokens": "x", "out": "y"}')
    assert main([str(wrong)]) == 2
    wrong.write_text('{"settings": {}}')
    assert main([str(wrong)]) == 2
    assert main([]) == 2

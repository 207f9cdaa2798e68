from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobs.errors import UserError
from jobs.lock import locked
from shards.views import connect
from tests.jobs.corpus import corpus, digests, document, manifests, mill, recipe, rows, write_jsonl

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A corpus and one finished run over it, to compare with."""
    folder = tmp_path_factory.mktemp("made")
    data = corpus(folder / "data")
    mill(data, folder / "out")
    return data, folder / "out"


def times(out: Path) -> dict[str, int]:
    """When each file of the output was written."""
    return {str(p): p.stat().st_mtime_ns for p in sorted(out.rglob("*")) if p.is_file() and "lock" not in p.name}


def test_every_row_and_byte_has_an_outcome_at_each_step(made: tuple[Path, Path]) -> None:
    data, out = made
    told = manifests(out)
    assert list(told) == ["read", "extract", "quality", "exact", "minhash"]
    assert told["read"]["rows"]["in"] == 400
    for account in told.values():
        for what in ("rows", "bytes"):
            counts = account[what]
            assert counts["in"] == counts["kept"] + counts["dropped"] + counts["quarantined"]
    assert told["exact"]["rules"]
    assert told["minhash"]["rules"]
    assert told["read"]["bytes"]["in"] == sum(path.stat().st_size for path in data.glob("*.jsonl"))


def test_the_ledger_has_one_row_a_document_that_went_in(made: tuple[Path, Path]) -> None:
    _, out = made
    with connect(str(out)) as views:
        assert views.sql("SELECT count(*), count(DISTINCT id) FROM ledger").fetchall() == [(400, 400)]
        copies = views.sql("SELECT sum(copies) FROM documents").fetchall()[0][0]
        dropped_by_rules = views.sql("SELECT count(*) FROM dropped WHERE step = 'quality'").fetchall()[0][0]
        assert copies + dropped_by_rules == 400
        survivors = "SELECT count(*) FROM duplicates d LEFT JOIN ledger l ON d.kept_id = l.id WHERE l.id IS NULL"
        assert views.sql(survivors).fetchall() == [(0,)]
        assert views.sql("SELECT count(*) FROM duplicates WHERE similarity < 0.8").fetchall() == [(0,)]


def test_one_worker_gives_the_same_digests(made: tuple[Path, Path], tmp_path: Path) -> None:
    data, out = made
    mill(data, tmp_path / "out", workers=1)
    assert digests(tmp_path / "out") == digests(out)


def test_another_input_order_and_cut_gives_the_same_digests(made: tuple[Path, Path], tmp_path: Path) -> None:
    mill(corpus(tmp_path / "data", files=3, shuffled=7), tmp_path / "out", shard_bytes=11_000)
    assert digests(tmp_path / "out") == digests(made[1])


def test_a_second_run_does_nothing(made: tuple[Path, Path]) -> None:
    data, out = made
    before = times(out)
    assert mill(data, out).exit_code == 0
    assert times(out) == before


def test_a_changed_threshold_runs_its_group_and_what_follows_only(tmp_path: Path) -> None:
    data, out = corpus(tmp_path / "data"), tmp_path / "out"
    mill(data, out)
    before, first = times(out), digests(out)
    steps = [{"step": "quality", "rules": ["gopher_repetition"]}, {"step": "exact"}, {"step": "minhash", "verify": 0.9}]
    mill(data, out, steps=steps)
    after, second = times(out), digests(out)
    changed = {Path(path).relative_to(out).parts[0] for path in after if after[path] != before.get(path)}
    assert changed == {"04-minhash", "run.json"}
    assert {name for name in first if first[name] != second[name]} == {"minhash"}


def test_a_changed_input_is_noticed(tmp_path: Path) -> None:
    data, out = corpus(tmp_path / "data"), tmp_path / "out"
    mill(data, out)
    first = digests(out)
    path = data / "part-0.jsonl"
    stamp = path.stat()
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("mill", "mall", 1), encoding="utf-8")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1))
    mill(data, out)
    assert digests(out)["read"] != first["read"]


def test_a_step_that_is_gone_leaves_no_stale_folder(tmp_path: Path) -> None:
    data, out = corpus(tmp_path / "data", count=60), tmp_path / "out"
    mill(data, out)
    mill(data, out, steps=[{"step": "exact"}])
    assert sorted(p.name for p in out.iterdir() if p.name[:2].isdigit()) == ["00-read", "01-extract", "02-exact"]


@pytest.mark.parametrize("wound", ["data file gone", "manifest gone", "data file short", "last data gone"])
def test_a_half_written_output_is_not_taken_for_a_finished_one(
    made: tuple[Path, Path], tmp_path: Path, wound: str
) -> None:
    data, _ = made
    out = tmp_path / "out"
    mill(data, out)
    first = digests(out)
    folder = out / "02-quality"
    part = sorted((folder / "data").glob("*.parquet"))[0]
    if wound == "last data gone":
        part = out / "04-minhash" / "data" / part.name
        shutil.rmtree(part.parent)
    elif wound == "manifest gone":
        (folder / "manifest.json").unlink()
    elif wound == "data file gone":
        part.unlink()
    else:
        part.write_bytes(part.read_bytes()[:100])
    mill(data, out)
    assert digests(out) == first
    assert part.stat().st_size > 100


def test_keep_last_leaves_only_the_last_data_and_knows_that_it_is_done(tmp_path: Path) -> None:
    data, out = corpus(tmp_path / "data", count=60), tmp_path / "out"
    mill(data, out, keep="last")
    assert [path.parent.name for path in sorted(out.glob("*/data"))] == ["04-minhash"]
    before = times(out)
    mill(data, out, keep="last")
    assert times(out) == before


def test_two_runs_on_one_output_exclude_each_other(tmp_path: Path) -> None:
    data = corpus(tmp_path / "data", count=30)
    with locked(str(tmp_path / "out")), pytest.raises(UserError, match="another run is writing there"):
        mill(data, tmp_path / "out")


def test_limit_takes_the_first_records_of_each_source(tmp_path: Path) -> None:
    data = corpus(tmp_path / "data")
    from jobs.running import run

    result = run(recipe(data, tmp_path / "out"), limit=25, quiet=True)
    assert result.records == 25


def test_a_document_that_makes_a_step_raise_is_quarantined_alone(tmp_path: Path) -> None:
    made = rows(50)
    made[17]["text"] += " raise"
    write_jsonl(tmp_path / "data" / "a.jsonl", made)
    steps = [{"step": "python", "object": "tests.jobs.poison.Poison"}, {"step": "exact"}]
    result = mill(tmp_path / "data", tmp_path / "out", steps=steps)
    assert (result.exit_code, result.quarantined) == (3, 1)
    with connect(str(tmp_path / "out")) as views:
        row = views.sql("SELECT step, error, message, location FROM quarantine").fetchall()[0]
    assert row[:2] == ("python", "ValueError")
    assert "cannot stand it" in row[2]
    assert row[3] == "row-17"
    assert mill(tmp_path / "data", tmp_path / "out2", steps=steps, max_quarantined=0.1).exit_code == 0


def test_a_shard_whose_worker_dies_is_named_and_the_rest_is_done(tmp_path: Path) -> None:
    good, bad = rows(30), rows(30, seed=2)
    bad[3]["text"] += " abort"
    write_jsonl(tmp_path / "data" / "a.jsonl", good)
    write_jsonl(tmp_path / "data" / "b.jsonl", bad)
    steps = [{"step": "python", "object": "tests.jobs.poison.Poison"}, {"step": "exact"}]
    result = mill(tmp_path / "data", tmp_path / "out", steps=steps, shard_bytes=1024)
    assert result.exit_code == 3
    assert any("the worker was killed by SIGABRT" in line for line in result.failures)
    assert not (tmp_path / "out" / "03-exact").exists()


def killed_run(recipe_file: Path, after_s: float) -> bool:
    """Start a run, kill -9 its driver after a while; whether it was still running."""
    command = [sys.executable, "-m", "jobs.command_line", "run", str(recipe_file), "--workers", "2"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True
    return False


def test_ten_kills_at_random_moments_and_a_resume_give_the_same_digests(
    made: tuple[Path, Path], tmp_path: Path
) -> None:
    data, whole = made
    out = tmp_path / "out"
    recipe_file = tmp_path / "recipe.json"
    recipe_file.write_text(json.dumps(document(data, out)), encoding="utf-8")
    chance = random.Random(11)
    killed = 0
    for _ in range(10):
        killed += killed_run(recipe_file, chance.uniform(0.8, 4.0))
        if (out / "run.json").exists() and chance.random() < 0.5:
            for manifest in out.glob("0[2-4]-*/manifest.json"):
                manifest.unlink()
        time.sleep(0.2)
    assert killed >= 3
    mill(data, out)
    assert digests(out) == digests(whole)
    assert not list(out.rglob("*.partial"))


def test_hash_seed_does_not_change_digests(made: tuple[Path, Path], tmp_path: Path) -> None:
    data, whole = made
    recipe_file = tmp_path / "recipe.json"
    recipe_file.write_text(json.dumps(document(data, tmp_path / "out")), encoding="utf-8")
    environment = os.environ | {"PYTHONHASHSEED": "4242"}
    command = [sys.executable, "-m", "jobs.command_line", "run", str(recipe_file), "--workers", "1"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    assert digests(tmp_path / "out") == digests(whole)


def processes_of(session: int) -> list[int]:
    """Living processes whose command runs in the sessions that a run started, as /proc tells."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                environment = (folder / "environ").read_bytes()
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if f"GRISTMILL_TEST_RUN={session}".encode() in environment and state != "Z":
                found.append(int(folder.name))
    return found


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_stopped_driver_leaves_no_process_and_no_writer(tmp_path: Path, blow: signal.Signals) -> None:
    data, out = corpus(tmp_path / "data", count=3000), tmp_path / "out"
    recipe_file = tmp_path / "recipe.json"
    recipe_file.write_text(json.dumps(document(data, out, shard_bytes=1024)), encoding="utf-8")
    mark = random.SystemRandom().randrange(1 << 60)
    command = [sys.executable, "-m", "jobs.command_line", "run", str(recipe_file), "--workers", "2"]
    environment = os.environ | {"GRISTMILL_TEST_RUN": str(mark)}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not list((out / "01-extract" / "data").glob("*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(blow)
    _, said = process.communicate(timeout=30)  # hangs where a process that was left holds the pipe
    assert "Traceback" not in said
    if blow == signal.SIGINT:
        assert process.returncode == 130
    time.sleep(1.0)
    written = len(list((out / "01-extract" / "data").glob("*")))
    assert not processes_of(mark)
    time.sleep(1.0)
    assert len(list((out / "01-extract" / "data").glob("*"))) == written


def test_a_users_own_folders_are_never_removed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_jsonl(out / "10-raw" / "a.jsonl", rows(3))
    (out / "02-notes").mkdir()
    (out / "02-notes" / "note.txt").write_text("mine", encoding="utf-8")
    mill(corpus(tmp_path / "data", count=30), out)
    assert (out / "10-raw" / "a.jsonl").exists()
    assert (out / "02-notes" / "note.txt").exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}"])
@pytest.mark.parametrize("name", ["run.json", ".gristmill/inputs.json", "02-quality/manifest.json"])
def test_a_torn_file_is_not_a_finished_one(made: tuple[Path, Path], tmp_path: Path, name: str, content: bytes) -> None:
    out = tmp_path / "out"
    data = corpus(tmp_path / "data", count=30)
    mill(data, out)
    first = digests(out)
    (out / name).write_bytes(content)
    assert mill(data, out).exit_code == 0
    assert digests(out) == first


@pytest.mark.parametrize("side", ["03-exact/dropped", "02-quality/signals"])
@pytest.mark.parametrize("cut", [True, False])
def test_a_damaged_side_file_is_noticed_and_made_again(tmp_path: Path, side: str, cut: bool) -> None:
    data, out = corpus(tmp_path / "data", count=60), tmp_path / "out"
    mill(data, out)
    first = digests(out)
    part = sorted((out / side).glob("*.parquet"))[0]
    whole = part.read_bytes()
    if cut:
        part.write_bytes(whole[:50])
    else:
        part.unlink()
    mill(data, out)
    assert digests(out) == first
    assert part.read_bytes() == whole

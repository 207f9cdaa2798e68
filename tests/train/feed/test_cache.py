"""Local copies of remote files: verified, bounded, and never taken from under a reader."""

from __future__ import annotations

import mmap
import multiprocessing
import os
from pathlib import Path
from typing import IO

import fsspec
import pytest
import xxhash

from train.feed import cache as cache_module
from train.feed.cache import FileCache, default_folder
from train.feed.token_manifest import TokenShardsError


def put(name: str, data: bytes) -> tuple[str, int, str]:
    fsspec.filesystem("memory").pipe(f"/cached/{name}", data)
    return f"memory://cached/{name}", len(data), xxhash.xxh3_128_hexdigest(data)


def kept(folder: Path) -> list[int]:
    return sorted(path.stat().st_size for path in folder.rglob("*.bin"))


def test_a_file_is_copied_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = put("once", b"tokens")
    for _ in range(2):
        with FileCache(str(tmp_path)).open(*told) as held:
            assert held.read() == b"tokens"
        monkeypatch.setattr(cache_module, "_transfer", lambda *told: pytest.fail("copied again"))


def test_a_local_copy_of_another_size_is_replaced(tmp_path: Path) -> None:
    told = put("torn", b"tokens")
    FileCache(str(tmp_path)).open(*told).close()
    next(tmp_path.rglob("*.bin")).write_bytes(b"tok")
    with FileCache(str(tmp_path)).open(*told) as held:
        assert held.read() == b"tokens"


def test_the_least_recently_taken_are_deleted_first(tmp_path: Path) -> None:
    cache = FileCache(str(tmp_path), max_bytes=30)
    files = [put(str(number), bytes([number]) * (10 + number)) for number in range(3)]
    for clock, number in enumerate((0, 1, 0, 2)):
        cache.open(*files[number]).close()
        path = next(tmp_path.rglob(f"{files[number][2]}*"))
        os.utime(path, ns=(clock, clock))
    assert kept(tmp_path) == [10, 12]


def test_a_file_that_is_held_or_mapped_is_not_deleted_and_a_cache_smaller_than_a_file_works(tmp_path: Path) -> None:
    cache = FileCache(str(tmp_path), max_bytes=5)
    first, second, third = (put(name, name.encode() * 10) for name in "abc")
    with cache.open(*first) as held:
        mapped = mmap.mmap(held.fileno(), 0, access=mmap.ACCESS_READ)
    with cache.open(*second) as other:
        assert other.read() == b"b" * 10
        assert kept(tmp_path) == [10, 10]
    cache.open(*third).close()
    assert mapped[:] == b"a" * 10
    assert {path.name[:32] for path in tmp_path.rglob("*.bin")} == {first[2], third[2]}
    mapped.close()
    cache.open(*second).close()
    assert kept(tmp_path) == [10]


def test_an_open_file_outlives_its_name(tmp_path: Path) -> None:
    told = put("gone", b"tokens")
    with FileCache(str(tmp_path)).open(*told) as held:
        next(tmp_path.rglob("*.bin")).unlink()
        assert held.read() == b"tokens"


def test_what_a_killed_process_left_is_removed_and_a_running_ones_is_not(tmp_path: Path) -> None:
    told = put("next", b"tokens")
    (tmp_path / "ab").mkdir()
    dead, alive = tmp_path / "ab" / "dead.bin.0.partial", tmp_path / "ab" / "alive.bin.1.partial"
    dead.write_bytes(b"1")
    with open(alive, "wb") as held:
        cache_module._lock(held, exclusive=True)
        FileCache(str(tmp_path)).open(*told).close()
        assert (dead.exists(), alive.exists()) == (False, True)


def test_a_torn_transfer_is_tried_again_and_a_wrong_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = put("flaky", b"tokens")
    whole, asked = cache_module._transfer, []

    def torn(url: str, out: object) -> tuple[int, str]:
        asked.append(url)
        found = whole(url, out)  # type: ignore[arg-type]
        return found if len(asked) == 2 else (found[0] - 1, "0" * 32)

    monkeypatch.setattr(cache_module, "_transfer", torn)
    FileCache(str(tmp_path)).open(*told).close()
    assert len(asked) == 2
    with pytest.raises(TokenShardsError, match=r"memory://cached/flaky: 5 bytes of digest .* 6 of 0000"):
        FileCache(str(tmp_path)).open(told[0], 6, "0" * 32)
    with pytest.raises(TokenShardsError, match="memory://cached/none: no such file"):
        FileCache(str(tmp_path)).open("memory://cached/none", 6, "1" * 32)
    assert not list(tmp_path.rglob("*.partial"))


def _read_often(folder: str, remote: str, digests: list[str], start: int, failed: object) -> None:
    cache = FileCache(folder, max_bytes=250)
    for turn in range(60):
        number = (start + turn * 7) % len(digests)
        with cache.open(f"file://{remote}/{number}", 100, digests[number]) as held:
            if held.read() != bytes([number]) * 100:
                failed.value = 1  # type: ignore[attr-defined]


def test_processes_that_fight_for_a_small_cache_all_read_right(tmp_path: Path) -> None:
    remote = tmp_path / "remote"
    remote.mkdir()
    for number in range(8):
        (remote / str(number)).write_bytes(bytes([number]) * 100)
    digests = [xxhash.xxh3_128_hexdigest(bytes([number]) * 100) for number in range(8)]
    context = multiprocessing.get_context("fork")
    failed = context.Value("i", 0)
    told = [(str(tmp_path / "cache"), str(remote), digests, start, failed) for start in range(4)]
    processes = [context.Process(target=_read_often, args=one) for one in told]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    assert failed.value == 0
    assert sum(kept(tmp_path / "cache")) <= 250 + 4 * 100


def test_a_partial_file_that_was_deleted_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "remote").write_bytes(b"a" * 100)
    deleted = []

    def meddle(file: IO[bytes], *, exclusive: bool) -> None:
        if str(file.name).endswith(cache_module.PARTIAL) and not deleted:
            deleted.append(file.name)
            Path(file.name).unlink()
        lock(file, exclusive=exclusive)

    lock = cache_module._lock
    monkeypatch.setattr(cache_module, "_lock", meddle)
    cache = FileCache(str(tmp_path / "cache"))
    digest = xxhash.xxh3_128_hexdigest(b"a" * 100)
    with cache.open(f"file://{tmp_path}/remote", 100, digest) as held:
        assert held.read() == b"a" * 100
    assert deleted


def test_a_marker_is_for_one_state_of_a_file(tmp_path: Path) -> None:
    cache, path = FileCache(str(tmp_path / "cache")), tmp_path / "f"
    path.write_bytes(b"abc")
    state = path.stat()
    assert not cache.is_verified(state, "f", "d1")
    cache.mark_verified(state, "f", "d1")
    assert cache.is_verified(state, "f", "d1")
    assert not cache.is_verified(state, "f", "d2")
    assert not cache.is_verified(state, "g", "d1")
    os.utime(path, ns=(1, 1))
    assert not cache.is_verified(path.stat(), "f", "d1")


def test_the_default_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == f"{tmp_path}/gristmill/tokens"
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none/none")
    assert default_folder().endswith(f"gristmill-tokens-{os.getuid()}")

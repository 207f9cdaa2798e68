"""The tables of a store, and how its file is opened.

What was generated is only ever added to: blobs, teachers, requests, replies, failures, runs. What is concluded from it
(verdicts, items, samples) can be concluded anew, and is then replaced. Long columns stand last: what stands before them
is read without them.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from synth.errors import SynthError

FORMAT: Final = 1
"""Raised when the tables change: a store of another format is refused, never guessed at."""

APPLICATION_ID: Final = 0x67727374
CACHE_KIB: Final = 4096
"""Of SQLite's pages in memory; a bound that is reached soon, so that memory is the same for any number of rows."""

CHECKPOINT_PAGES: Final = 4000
BUSY_MILLISECONDS: Final = 30_000

TABLES: Final = """
CREATE TABLE runs (id INTEGER PRIMARY KEY, settings BLOB NOT NULL, began TEXT NOT NULL, seconds REAL NOT NULL,
    ended TEXT NOT NULL, counts TEXT NOT NULL, cost REAL NOT NULL);
CREATE TABLE teachers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, model TEXT NOT NULL, revision TEXT NOT NULL,
    template TEXT NOT NULL, UNIQUE (name, model, revision, template));
CREATE TABLE tasks (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, fingerprint BLOB NOT NULL,
    read_by INTEGER NOT NULL);
CREATE TABLE blobs (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, data BLOB NOT NULL);
CREATE TABLE requests (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, task INTEGER NOT NULL, item TEXT NOT NULL,
    content INTEGER NOT NULL, rollout INTEGER NOT NULL, teacher INTEGER NOT NULL, temperature REAL,
    run INTEGER NOT NULL);
CREATE TABLE replies (request INTEGER PRIMARY KEY, run INTEGER NOT NULL, finish_reason TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
    temperature REAL NOT NULL, seed INTEGER NOT NULL, seconds REAL NOT NULL, attempts INTEGER NOT NULL,
    forced INTEGER NOT NULL, prompt_ids INTEGER, text BLOB NOT NULL, reasoning BLOB, tool_calls BLOB, ids BLOB,
    logprobs BLOB);
CREATE TABLE failures (id INTEGER PRIMARY KEY, request INTEGER NOT NULL, run INTEGER NOT NULL, stage TEXT NOT NULL,
    error TEXT NOT NULL, attempts INTEGER NOT NULL, final INTEGER NOT NULL);
CREATE INDEX failures_of_request ON failures (request);
CREATE TABLE verdicts (key BLOB PRIMARY KEY, run INTEGER NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL,
    score REAL, seconds REAL NOT NULL);
CREATE TABLE items (id INTEGER PRIMARY KEY, task INTEGER NOT NULL, item TEXT NOT NULL, fingerprint BLOB NOT NULL,
    seen INTEGER NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, concluded BLOB NOT NULL,
    verifiers TEXT NOT NULL, again INTEGER NOT NULL, by INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE (task, item));
CREATE TABLE refused_rows (id INTEGER PRIMARY KEY, task INTEGER NOT NULL, run INTEGER NOT NULL, place TEXT NOT NULL,
    reason TEXT NOT NULL);
CREATE INDEX refused_rows_of_task ON refused_rows (task, run);
CREATE TABLE samples (id INTEGER PRIMARY KEY, task INTEGER NOT NULL, item TEXT NOT NULL, number INTEGER NOT NULL,
    kind TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, tokens INTEGER NOT NULL, keys BLOB NOT NULL,
    data BLOB NOT NULL, UNIQUE (task, item, number));
CREATE TABLE allocations (task INTEGER NOT NULL, item TEXT NOT NULL, trials INTEGER NOT NULL, right INTEGER NOT NULL,
    rollouts INTEGER, PRIMARY KEY (task, item)) WITHOUT ROWID;
"""


def connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """The file's connection, with its tables. Raises SynthError for a file of another kind or format."""
    mode = "ro" if read_only else "rwc"
    try:
        connection = sqlite3.connect(
            f"file:{_quoted(path)}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False,
            timeout=BUSY_MILLISECONDS / 1000,
        )  # fmt: skip
        try:
            _prepare(connection, path, read_only=read_only)
        except BaseException:
            connection.close()
            raise
    except sqlite3.DatabaseError as error:
        raise SynthError(f"{path}: {error}; name the folder of a run, or one that is not there yet") from None
    return connection


def _quoted(path: Path) -> str:
    return str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _prepare(connection: sqlite3.Connection, path: Path, *, read_only: bool) -> None:
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    [application] = connection.execute("PRAGMA application_id").fetchone()
    [found] = connection.execute("PRAGMA user_version").fetchone()
    [tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables and not read_only:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(
            f"BEGIN; {TABLES} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT}; COMMIT;"
        )
    elif application != APPLICATION_ID:
        raise SynthError(f"{path}: is no store of synthesis; name the folder of a run, or one that is not there yet")
    elif found != FORMAT:
        raise SynthError(f"{path}: has format {found}, this version reads {FORMAT}; take the version that wrote it")
    if not read_only:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")

"""Steps made elsewhere: any datatrove filter or formatter, and a user's own step.

Both hold a dotted path and arguments, so that they pickle small; the block itself is made once a process.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import traceback
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from jobs.errors import nearest
from shards.schema import is_transient
from shards.step import Check, Judged, judge, with_column

COLUMN_TYPES = {
    "string": pa.string(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "list<string>": pa.list_(pa.string()),
}
_NOT_WORDS = re.compile(r"[^a-z0-9]+")
_CONFIG = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=_CONFIG)
class DatatroveStep:
    """Any datatrove block that judges or rewrites one document at a time.

    A dropped document's rule is the reason that the block gives, else the block's class. A changed text is a rewrite.
    One that makes the block raise is quarantined by itself. Blocks work on one document at a time in Python: expect
    thousands of documents a second, not hundreds of thousands. A block that draws random numbers (SamplerFilter) draws
    them in the order of documents in a shard, so its answer changes with the layout of the shards.
    """

    name: ClassVar[str] = "datatrove"
    version: ClassVar[int] = 1
    reads: ClassVar[frozenset[str]] = frozenset({"text"})
    libraries: ClassVar[tuple[str, ...]] = ("datatrove",)

    block: str = Field(min_length=1)
    """Dotted path of the class, as datatrove.pipeline.filters.GopherQualityFilter."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the block's constructor, by name."""
    columns: dict[str, str] = Field(default_factory=dict)
    """{key: type} of metadata that the block writes and that become columns; types: string, int64, float64, bool,
    list<string>."""

    def __post_init__(self) -> None:
        kind = load_object(self.block, "block")
        base = import_module("datatrove.pipeline.base").PipelineStep
        if not (inspect.isclass(kind) and issubclass(kind, base)):
            raise ValueError(f"block: {self.block} is no datatrove block; name a class under datatrove.pipeline")
        if not _is_per_document(kind):
            raise ValueError(f"block: {self.block} does not judge one document at a time; name a filter or a formatter")
        check_arguments(kind, self.args, self.block)
        for column, given in self.columns.items():
            if given not in COLUMN_TYPES:
                raise ValueError(f"columns: {column}: no type {given!r}; {nearest(given, COLUMN_TYPES, what='types')}")

    @property
    def adds(self) -> pa.Schema:
        return pa.schema([(column, COLUMN_TYPES[given]) for column, given in self.columns.items()])

    def files(self) -> tuple[str, ...]:
        """The source file of a block that is not datatrove's own: an edit of it changes the step."""
        return _source_files(self.block, "datatrove")

    def __call__(self, batch: pa.RecordBatch) -> Judged:
        block = _block(self.block, json.dumps(self.args, sort_keys=True))
        documents = list(_documents(batch))
        before = [document.text for document in documents]
        reasons: list[str | None] = []
        failures: dict[int, tuple[str, str]] = {}
        for row, document in enumerate(documents):
            try:
                reasons.append(_pass(block, document))
                _check_text(document.text)
            except Exception as error:  # one document's trouble is its own
                reasons[row:] = [None]
                failures[row] = (type(error).__name__, _place(error))
        judged = judge(batch, _checks(reasons), failures=failures)
        kept = [documents[row] for row in judged.kept_rows]
        texts = [before[row] for row in judged.kept_rows]
        return Judged(
            kept=self._written(judged.kept, kept, texts),
            kept_rows=judged.kept_rows,
            drops=judged.drops,
            failures=judged.failures,
        )

    def _written(self, batch: pa.RecordBatch, documents: list[Any], before: list[str]) -> pa.RecordBatch:
        after = [document.text for document in documents]
        if after != before:
            batch = with_column(batch, "text", pa.array(after, pa.large_string()))
        for column in self.adds:
            values = pa.array([document.metadata.get(column.name) for document in documents], column.type)
            batch = with_column(batch, column.name, values)
        return batch


@dataclass(frozen=True, kw_only=True, config=_CONFIG)
class PythonStep:
    """A step of your own: its objects are called with an Arrow RecordBatch and answer with shards.step.Judged.

    The object has name, version, reads and adds, as shards.step.Step says, and may have libraries and files(). It is
    imported from where Python finds it, the current directory last.
    """

    libraries: ClassVar[tuple[str, ...]] = ()

    object: str = Field(min_length=1)
    """Dotted path, as my_steps.Shouting: a class, or an object that is a step already."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the class's constructor, by name."""

    def __post_init__(self) -> None:
        found = load_object(self.object, "object")
        if inspect.isclass(found):
            check_arguments(found, self.args, self.object)
        elif self.args:
            raise ValueError(f"args: {self.object} is made already and takes none; name its class or remove args:")
        lacks = [part for part in ("name", "version", "reads", "adds") if not hasattr(self.made, part)]
        if not callable(self.made):
            lacks.append("__call__")
        if lacks:
            raise ValueError(f"object: {self.object} is no step, it lacks {', '.join(lacks)}; see shards.step.Step")

    @property
    def made(self) -> Any:
        """The user's step itself, made once a process."""
        return _made(self.object, json.dumps(self.args, sort_keys=True))

    @property
    def name(self) -> str:
        return str(self.made.name)

    @property
    def version(self) -> int:
        return int(self.made.version)

    @property
    def reads(self) -> frozenset[str]:
        return frozenset(self.made.reads)

    @property
    def adds(self) -> pa.Schema:
        schema: pa.Schema = self.made.adds
        return schema

    def files(self) -> tuple[str, ...]:
        """The step's own files, and the module it is written in: an edit of it changes the step."""
        own = self.made.files() if hasattr(self.made, "files") else ()
        return (*own, *_source_files(self.object, "gristmill"))

    def __call__(self, batch: pa.RecordBatch) -> Judged:
        judged: Judged = self.made(batch)  # what it truly is, jobs.returned checks
        return judged


def load_object(dotted: str, field: str) -> Any:
    """Import "package.module.Name". Raises ValueError, beginning with `field`, that says what is missing."""
    module_name, _, name = dotted.rpartition(".")
    if not module_name:
        raise ValueError(f"{field}: {dotted!r} names no module; write it in full, as package.module.Name")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        raise ValueError(f"{field}: there is no module {error.name}; correct {dotted} or install it") from None
    if not hasattr(module, name):
        known = [other for other in dir(module) if not other.startswith("_")]
        raise ValueError(f"{field}: {module_name} has no {name!r}; {nearest(name, known, what='it has')}")
    return getattr(module, name)


def check_arguments(made_by: Any, args: dict[str, Any], dotted: str) -> None:
    """Raise ValueError, beginning with `args`, for arguments that the constructor does not take or lacks."""
    try:
        signature = inspect.signature(made_by)
    except ValueError:
        return
    takes_any = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    for name in args:
        if name not in signature.parameters and not takes_any:
            raise ValueError(
                f"args: {dotted} takes no {name!r}; {nearest(name, signature.parameters, what='it takes')}"
            )
    try:
        signature.bind(**args)
    except TypeError as error:
        raise ValueError(f"args: {dotted}: {error}; add it under args:") from None


def _is_per_document(kind: type[Any]) -> bool:
    filters = import_module("datatrove.pipeline.filters.base_filter").BaseFilter
    formatters = import_module("datatrove.pipeline.formatters.base").BaseFormatter
    return issubclass(kind, (filters, formatters))


@lru_cache(maxsize=32)
def _block(dotted: str, args: str) -> Any:
    return load_object(dotted, "block")(**json.loads(args))


@lru_cache(maxsize=32)
def _made(dotted: str, args: str) -> Any:
    found = load_object(dotted, "object")
    return found(**json.loads(args)) if inspect.isclass(found) else found


def _source_files(dotted: str, but_of: str) -> tuple[str, ...]:
    if dotted.partition(".")[0] == but_of:
        return ()
    file = getattr(import_module(dotted.rpartition(".")[0]), "__file__", None)
    return (str(file),) if file else ()


def _documents(batch: pa.RecordBatch) -> Iterator[Any]:
    """datatrove's own shape: text, id, and every other column as metadata."""
    document = import_module("datatrove.data").Document
    names = [name for name in batch.schema.names if not is_transient(name) and name not in ("text", "id")]
    others = batch.select(names).to_pylist()
    texts, ids = batch.column("text").to_pylist(), batch.column("id").to_pylist()
    for text, identity, metadata in zip(texts, ids, others, strict=True):
        yield document(text=text or "", id=identity, metadata=metadata)


def _pass(block: Any, document: Any) -> str | None:
    """Run the block on one document, which it may rewrite; the reason of a drop, None for one that stays."""
    if hasattr(block, "format"):
        document.text = block.format(document.text)
        return None
    batched = getattr(block, "batch_size", 1) > 1
    answer = block.filter_batch([document])[0] if batched else block.filter(document)
    stays, reason = answer if isinstance(answer, tuple) else (answer, None)
    return None if stays else _code(str(reason or type(block).__name__))


def _code(reason: str) -> str:
    """A reason as a snake_case code: blocks give words, and class names."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", reason)
    return _NOT_WORDS.sub("_", spaced.casefold()).strip("_") or "dropped"


def _check_text(text: Any) -> None:
    if not isinstance(text, str):
        raise TypeError("the block's text is no str")
    text.encode()  # a lone surrogate cannot be stored


def _checks(reasons: list[str | None]) -> list[Check]:
    rules = sorted({reason for reason in reasons if reason is not None})
    told = np.array(reasons, dtype=object)
    return [Check(rule=rule, failed=np.asarray(told == rule, dtype=np.bool_)) for rule in rules]


def _place(error: BaseException) -> str:
    """Where a block raised: its own words may quote the document."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"raised at {Path(frame.filename).name}:{frame.lineno}"

"""Settings of a run: the recipe's `synth:` section. Where it is written to is given apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field, TypeAdapter, model_validator
from pydantic.dataclasses import dataclass

from synth.selection.settings import Selection
from synth.teachers.settings import TeacherSettings

CODE_SECONDS: Final = 40.0
STRICT = ConfigDict(extra="forbid")
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Rows:
    """Rows to work on, and which of their columns is what.

    files: JSON lines (also .gz, .zst), CSV, Parquet; folders of them, or the output of an earlier run.
    columns: of an item's field (id, prompt, messages, text, gold, verifier, options, domain, skill, language, licence,
        source) the column; a field that is not named here takes the column of its own name, where there is one.
        A row without an id is named by a digest of its content.
    values: of fields that are the same in every row.
    limit: rows to read; None for all.
    unreadable: rows that are torn, or lack a column that `columns` names: refuse stops and names file and line, reject
        counts them as rejected.
    """

    files: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
    columns: dict[str, str] = Field(default_factory=dict)
    values: dict[str, Any] = Field(default_factory=dict)
    limit: Count | None = None
    unreadable: Literal["refuse", "reject"] = "refuse"

    @model_validator(mode="after")
    def _known_fields(self) -> Rows:
        from dataclasses import fields

        from synth.items import Item

        known = [one.name for one in fields(Item)]
        for name in (*self.columns, *self.values):
            if name not in known:
                raise ValueError(f"columns, values: {name} is no field of an item; there are {', '.join(known)}")
        if twice := sorted(set(self.columns) & set(self.values)):
            raise ValueError(f"columns, values: {twice[0]} stands in both; leave one out")
        if "id" in self.values:
            raise ValueError("values: id is another in each row; name a column, or leave it out")
        return self


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Budget:
    """What all runs into one folder may take together; None for no bound. Once one is reached, nothing further is
    asked; what is in flight then is still stored, so that a bound is passed by that much at most.

    tokens: of prompts and replies. cost: by the teachers' prices. seconds: of running. requests: sent.
    """

    tokens: Count | None = None
    cost: Positive | None = None
    seconds: Positive | None = None
    requests: Count | None = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Checking:
    """The processes that verify answers.

    processes: at once. limit_seconds: of one check; limits_seconds: of a kind, where it needs another.
    memory_mebibytes: of address space, a process.
    """

    processes: Count = 1
    limit_seconds: Positive = 10.0
    limits_seconds: dict[str, Positive] = Field(default_factory=dict)
    memory_mebibytes: int = Field(default=2048, ge=64)

    @property
    def limits_by_kind(self) -> dict[str, float]:
        """Programs are compiled and run under limits of their own, which stand within this one."""
        return {"code": CODE_SECONDS, **self.limits_seconds}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Synth:
    """A run of tasks against teachers.

    teachers: by the name that tasks call them. tasks: `kind` and the kind's own settings, in order; `name` where a
        kind stands twice; `rows` of its own. kind: one of synth.tasks, or module:Class of your own. From Python also
        instances of a kind's settings.
    rows: of tasks that have none of their own.
    seed: of all that is drawn; another one is another run of everything that is drawn from it.
    budget, checking: see there. select: what is kept of the samples; see synth.selection.
    open_items: items worked on at once; None is twice the requests in flight, at least 64. It bounds memory.
    stop_after_failures: consecutive requests without a reply after which a teacher is taken for gone, and no longer
        asked; None is twice its requests in flight, at least 64.
    progress_seconds: between two lines of progress.
    """

    name: ClassVar[str] = "synth"
    version: ClassVar[int] = 1
    free: ClassVar[frozenset[str]] = frozenset(
        {"budget", "checking", "open_items", "stop_after_failures", "progress_seconds"}
    )
    """What changes no row that is made."""

    teachers: dict[str, TeacherSettings] = Field(default_factory=dict)
    tasks: Annotated[tuple[Any, ...], Field(min_length=1)]
    rows: Rows | None = None
    seed: int = Field(default=1, ge=0)
    budget: Budget = Field(default_factory=Budget)
    checking: Checking = Field(default_factory=Checking)
    select: Selection | None = None
    open_items: Count | None = None
    stop_after_failures: Count | None = None
    progress_seconds: Positive = 5.0

    @model_validator(mode="after")
    def _sound_tasks(self) -> Synth:
        from synth.running.works import works_of

        works_of(self)
        return self

    def files(self) -> tuple[str, ...]:
        """The files of all rows and benchmarks that are named here. Raises SynthError where there are none."""
        from synth.running.rows import files_of

        told = [self.rows, *(one["rows"] for one in self.tasks if isinstance(one, Mapping) and one.get("rows"))]
        sources = [name for one in told if one for name in (one.files if isinstance(one, Rows) else one["files"])]
        benchmarks = () if self.select is None else self.select.files()
        return tuple(dict.fromkeys([*(file for source in sources for file in files_of(source)), *benchmarks]))

    def plain(self) -> dict[str, Any]:
        """As JSON values, the way a recipe says them."""
        told: dict[str, Any] = TypeAdapter(Synth).dump_python(self, mode="json")
        return told

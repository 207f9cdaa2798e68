"""A task of a recipe: its kind's settings, its rows, and a fingerprint of all that its conclusions depend on."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Protocol, cast, runtime_checkable

from synth.errors import SynthError
from synth.flows import Task
from synth.requests import digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from synth.running.settings import Rows, Synth

OWN: Final = ("kind", "name", "rows")
"""Keys of a task in a recipe that are not the kind's settings."""


@runtime_checkable
class Allocating(Protocol):
    """A task whose rollouts are shared out over all its items once a pilot has tried each.

    pilot_rollouts: of each item, in a first pass over all of them; None where each item decides by itself.
    """

    @property
    def pilot_rollouts(self) -> int | None: ...

    def allocate(self, pilots: Sequence[tuple[int, int]], seed: int) -> Sequence[int]:
        """Of each pilot's trials and right ones, the rollouts that its item gets in all, those of the pilot included.
        A pilot without trials (all its requests failed) must get some, too."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """name: in the recipe, unique. kind: the task's own name."""

    name: str
    kind: str
    task: Task
    rows: Rows | None
    seed: int

    @property
    def allocating(self) -> Allocating | None:
        """The task, where it shares rollouts out over all its items."""
        task = self.task
        return task if isinstance(task, Allocating) and task.pilot_rollouts is not None else None

    def fingerprint(self) -> bytes:
        """Of kind, version, settings, prompt templates and seed: items concluded under another are concluded anew."""
        settings = _plain(self.task)
        told = [self.kind, self.task.version, settings, sorted(set(_templates(settings))), self.seed]
        return bytes.fromhex(digest(told))


def works_of(settings: Synth) -> tuple[Work, ...]:
    """The tasks of a recipe. Raises SynthError, one line, at the first that is wrong."""
    works: list[Work] = []
    for at, told in enumerate(settings.tasks):
        where = f"tasks.{at}"
        if isinstance(told, Mapping):
            task, name, rows = _read(told, where, settings)
        else:
            if not isinstance(getattr(told, "name", None), str) or not callable(getattr(told, "flow", None)):
                raise SynthError(
                    f"{where}: {type(told).__name__} is no task; give kind and settings, or a task's instance"
                )
            task, name, rows = cast(Task, told), told.name, settings.rows
        if any(name == other.name for other in works):
            raise SynthError(f"{where}: there is a task {name} already; give one of them another `name`")
        works.append(Work(name=name, kind=task.name, task=task, rows=rows, seed=settings.seed))
    return tuple(works)


def _read(told: Mapping[str, Any], where: str, settings: Synth) -> tuple[Task, str, Rows | None]:
    from synth.running.settings import Rows

    kind = told.get("kind")
    if not isinstance(kind, str):
        raise SynthError(f"{where}: it has no `kind`; name one of synth.tasks, or module:Class")
    own = {key: value for key, value in told.items() if key not in OWN}
    task = validated(_class_of(kind, where), own, where)
    rows = told.get("rows")
    return task, str(told.get("name") or task.name), settings.rows if rows is None else validated(Rows, rows, where)


def _class_of(kind: str, where: str) -> type[Any]:
    if ":" not in kind:
        from synth.tasks import load

        try:
            return load(kind)
        except SynthError as error:
            raise SynthError(f"{where}: {error}") from None
    module, _, name = kind.partition(":")
    try:
        found: type[Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        raise SynthError(f"{where}: kind {kind} cannot be imported; module:Class, on Python's path") from None
    return found


def validated(kind: type[Any], values: Any, where: str) -> Any:
    """Settings of a mapping, strictly, or SynthError at the first mistake."""
    from pydantic import TypeAdapter, ValidationError
    from pydantic.errors import PydanticUserError

    try:
        return TypeAdapter(kind).validate_python(values)
    except PydanticUserError:
        raise SynthError(f"{where}: its kind is no class of settings; name a dataclass with items and flow") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = [*filter(None, [where]), *(str(part) for part in first["loc"])]
        wrong = first["msg"].removeprefix("Value error, ")
        if first["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
            known = ", ".join(one.name for one in fields(kind)) or "none"
            nested = len(first["loc"]) > 1
            wrong = "unknown; leave it out" if nested else f"unknown; the settings of {kind.__name__} are {known}"
        raise SynthError(": ".join([*filter(None, [".".join(place)]), wrong])) from None


def _plain(task: Task) -> Any:
    """A task's settings as JSON values."""
    if hasattr(type(task), "__pydantic_validator__"):
        from pydantic import TypeAdapter

        return TypeAdapter(type(task)).dump_python(task, mode="json")
    return asdict(task)  # type: ignore[call-overload]


def _templates(settings: Any) -> Iterator[str]:
    """Digests of the prompt templates that settings name: in entries that are called prompt, or end so."""
    if isinstance(settings, Mapping):
        for key, value in settings.items():
            if isinstance(value, str) and (key == "prompt" or key.endswith("_prompt")):
                from synth.prompts import template

                try:
                    yield f"{key}={template(value).digest}"
                except SynthError:
                    continue  # a task of the user's own may call something else a prompt; its text is in the settings
            else:
                yield from _templates(value)
    elif isinstance(settings, list | tuple):
        for value in settings:
            yield from _templates(value)

"""The one small interface behind which every verifier stands, and how options become its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from synth.errors import SynthError
from synth.verdicts import Verdict

Settings = TypeVar("Settings")


class Verifier(Protocol):
    """Says of an answer whether it is right. A class without arguments to its constructor, cheap to make.

    kind: as recipes write it, snake_case. version: raised when a verdict may come out otherwise; part of Check.key.
    It may have a method `prepare()`: imports that take long, which a worker process makes before its first check.
    """

    kind: str
    version: str

    def verify(self, gold: Any, answer: str, options: Mapping[str, Any]) -> Verdict:
        """The verdict on any text whatever. A gold that cannot be read is Outcome.ERROR; an answer that cannot be
        read is wrong. Raises SynthError for an unknown option or one out of range, before anything is verified."""


def read_options(settings: type[Settings], options: Mapping[str, Any], *, kind: str) -> Settings:
    """A verifier's settings (a pydantic dataclass) of a check's options, which come from a recipe's YAML or a row.

    Raises SynthError, one line, at the first that is unknown or out of range.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(settings).validate_python(dict(options))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        names = ", ".join(getattr(settings, "__dataclass_fields__", {}))
        unknown = first["type"] in ("unexpected_keyword_argument", "extra_forbidden")
        wrong = f"unknown option; those of {kind} are {names or 'none'}" if unknown else first["msg"]
        raise SynthError(f"verifier {kind}: {where}: {wrong}" if where else f"verifier {kind}: {wrong}") from None

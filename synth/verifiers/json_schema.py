"""The `json_schema` kind: strict JSON that a schema allows. Nothing is repaired, and nothing is fetched."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from synth.verdicts import Outcome, Verdict
from synth.verifiers.verifier import read_options

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

MAX_CHARS: Final = 1_000_000
MAX_DEPTH: Final = 64
"""Of brackets in an answer. A schema that refers to itself takes several Python frames a level, of 1,000."""

_FENCE = re.compile(r"^[ \t]*```[ \t]*(?:json)?[ \t]*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class JsonSchema:
    """Where the schema is and where the JSON stands.

    schema: where the gold is none: the same for all rows. part: whole, the answer is JSON and nothing else; fenced, it
        may stand in a ``` fence, with words around it, if there is one fence only.
    formats: "format" (date, ipv4 ...) is asserted, for those formats that need no further library.
    """

    schema: Mapping[str, Any] | None = None
    part: Literal["whole", "fenced"] = "fenced"
    formats: bool = True


class NotJson(Exception):
    """Why a text is not strict JSON; the reason names the rule."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Json:
    """Right if the answer is JSON (RFC 8259; no NaN or Infinity, no key twice in an object) of the schema.

    gold: the schema, as a mapping or as its JSON text; `$schema` names its draft, 2020-12 where it does not. An empty
    schema allows everything and is an error, as are an unknown draft, an invalid schema and a reference to another
    document: verdicts never wait for a network.
    """

    kind = "json_schema"
    version = "1"

    def verify(self, gold: Any, answer: str, options: Mapping[str, Any]) -> Verdict:
        settings = read_options(JsonSchema, options, kind=self.kind)
        try:
            schema = settings.schema if gold is None else _mapping(gold)
            # Sorted, as the cache goes by the text.
            validator = _validator(json.dumps(schema, sort_keys=True), settings.formats)
        except BadSchema as error:
            return Verdict(outcome=Outcome.ERROR, reason=error.reason)
        except Exception:  # whatever a row has for a schema breaks its own row, and no other
            return Verdict(outcome=Outcome.ERROR, reason="schema_bad")
        try:
            value = strict_json(json_part(answer, settings.part))
        except NotJson as error:
            return Verdict(outcome=Outcome.WRONG, reason=error.reason)
        return _judged(validator, value)


class BadSchema(ValueError):
    """Why a schema judges nothing."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def json_part(answer: str, part: str) -> str:
    """The text that should be JSON. Raises NotJson where several fences leave open which."""
    if part == "whole":
        return answer
    fences = list(_FENCE.finditer(answer[:MAX_CHARS]))
    if not fences or answer.lstrip()[:1] in ("{", "["):
        return answer
    if len(fences) != 2:
        raise NotJson("several_fences" if len(fences) > 2 else "fence_not_closed")
    return answer[fences[0].end() : fences[1].start()]


def strict_json(text: str) -> Any:
    """The value of a JSON text. Raises NotJson: not_json, duplicate_key, not_finite, nested_too_deeply, too_long."""
    if len(text) > MAX_CHARS:
        raise NotJson("too_long")
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_not_finite, parse_float=_finite)
    except RecursionError:
        raise NotJson("nested_too_deeply") from None
    except ValueError:  # of more digits than int takes, too
        raise NotJson("not_json") from None
    if _deeper_than(value, MAX_DEPTH):
        raise NotJson("nested_too_deeply")
    return value


def _deeper_than(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [inner for outer in level if isinstance(outer, dict | list) for inner in _inside(outer)]
        if not level:
            return False
    return any(isinstance(inner, dict | list) for inner in level)


def _inside(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise NotJson("duplicate_key")
    return made


def _not_finite(_: str) -> Any:
    raise NotJson("not_finite")


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise NotJson("not_finite")
    return value


def _mapping(gold: Any) -> Mapping[str, Any]:
    if isinstance(gold, str):
        gold = json.loads(gold)
    if not isinstance(gold, Mapping):
        raise BadSchema("schema_is_no_object")
    return gold


@lru_cache(maxsize=256)
def _validator(text: str, formats: bool) -> Validator:
    """Of a schema's JSON. Raises BadSchema."""
    from jsonschema import FormatChecker, SchemaError, validators
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    schema = json.loads(text)
    if not any(key != "$schema" for key in schema or ()):
        raise BadSchema("schema_is_empty")
    none: Any = None
    chosen = validators.validator_for(schema, default=none) if "$schema" in schema else validators.Draft202012Validator
    if chosen is None:
        raise BadSchema("schema_of_unknown_draft")
    try:
        chosen.check_schema(schema)
    except SchemaError:
        raise BadSchema("schema_is_invalid") from None
    # A registry of the drafts alone: the default one would fetch a reference from the network.
    made: Validator = chosen(schema, registry=REGISTRY, format_checker=FormatChecker() if formats else None)
    return made


def _judged(validator: Validator, value: Any) -> Verdict:
    from referencing.exceptions import Unresolvable

    try:
        first = next(validator.iter_errors(value), None)
    except Unresolvable:
        return Verdict(outcome=Outcome.ERROR, reason="schema_refers_elsewhere")
    except RecursionError:
        return Verdict(outcome=Outcome.ERROR, reason="schema_recurses")
    except Exception as error:  # a schema may pass its own check and still break its reader
        return Verdict(outcome=Outcome.ERROR, reason=f"schema_{type(error).__name__}")
    if first is None:
        return Verdict(outcome=Outcome.RIGHT, reason="valid")
    return Verdict(outcome=Outcome.WRONG, reason=f"schema.{first.validator}")

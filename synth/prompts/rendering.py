"""Fills templates in, in Jinja's sandbox. A value is put in as it is: braces and tags in it mean nothing."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from synth.errors import SynthError
from synth.prompts.library import Template, template
from synth.requests import Message

if TYPE_CHECKING:
    from jinja2 import Template as Compiled
    from jinja2.sandbox import ImmutableSandboxedEnvironment


def render(reference: str, /, **values: Any) -> tuple[Message, ...]:
    """The messages of a template: a system message where it has one that is not blank, and the user's.

    Raises SynthError for a value that is missing or unknown, or that the template cannot work with.
    """
    chosen = template(reference)
    if unknown := sorted(set(values) - set(chosen.variables)):
        raise SynthError(
            f"{chosen.files['user']}: {unknown[0]}: no such variable; there are {', '.join(chosen.variables) or 'none'}"
        )
    given = {**chosen.defaults, **values}
    for variable in chosen.variables:
        if variable not in given:
            raise SynthError(f"{_file_with(chosen, variable)}: {variable}: no value for this variable was given")
    filled = {role: _filled(chosen, role, given) for role in chosen.texts}
    return tuple({"role": role, "content": text} for role, text in filled.items() if text.strip() or role == "user")


def check(chosen: Template) -> None:
    """Raises SynthError for a text that is no Jinja, or that reads what about.yaml does not name."""
    for role in chosen.texts:
        _compiled(chosen.texts[role], chosen.files[role])
        if stray := sorted(variables_of(chosen.texts[role]) - set(chosen.variables)):
            raise SynthError(f"{chosen.files[role]}: {stray[0]}: about.yaml names no such variable; add it there")


def variables_of(text: str) -> set[str]:
    """What a Jinja text reads from outside."""
    from jinja2 import meta

    return set(meta.find_undeclared_variables(_environment().parse(text)))


def _file_with(chosen: Template, variable: str) -> str:
    using = [role for role, text in chosen.texts.items() if variable in variables_of(text)]
    return chosen.files[using[0] if using else "user"]


def _filled(chosen: Template, role: str, given: dict[str, Any]) -> str:
    from jinja2 import TemplateError

    file = chosen.files[role]
    try:
        return _compiled(chosen.texts[role], file).render(given)
    except TemplateError as error:
        # Not Jinja's own words: they may quote a value that was used as a key.
        told = {"UndefinedError": "it reads a part that a value has not", "SecurityError": "the sandbox forbids it"}
        name = type(error).__name__
        raise SynthError(f"{file}: {told.get(name, name)}; it does not fit the values") from None
    except Exception as error:
        raise SynthError(f"{file}: {type(error).__name__} while it was filled in; it does not fit the values") from None


@lru_cache(maxsize=2048)
def _compiled(text: str, file: str) -> Compiled:
    from jinja2 import TemplateSyntaxError

    try:
        return _environment().from_string(text)
    except TemplateSyntaxError as error:
        raise SynthError(f"{file}: line {error.lineno}: no Jinja: {error.message}") from None


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
    )
    # What a prompt says depends on its values alone: no random words, no globals that a rendering changes.
    for name in ("lipsum", "cycler", "joiner", "namespace"):
        del environment.globals[name]
    del environment.filters["random"]
    return environment

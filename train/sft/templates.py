"""Chat templates: Jinja files rendered in a sandbox as transformers renders them, without a clock.

A `Rendering` also tells which characters are a content's spelling of a control token, so that they can be encoded as
ordinary text (train.sft.encoding).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from importlib import resources
from typing import Any

import jinja2
import xxhash
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import Const, Node, Template, TemplateData

from shards.store import exists, filesystem, join, read_json
from train.sft.refusals import Refused, SftError
from train.sft.rows import Message
from train.sft.sandbox import Sandbox, TooLongError, within

PRESETS = ("chatml", "gemma", "llama3", "mistral", "qwen2.5", "qwen3")
RENDERING_SECONDS = 60
MARK = "\ufdd0"  # rows that hold it are refused (train.sft.rows), so it is ours where it appears


@dataclass(frozen=True)
class Rendering:
    """A rendered conversation. literal: (start, end) of each control token's name that is a content's own text."""

    text: str
    literal: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class ChatTemplate:
    """A template with what it may read.

    source: its Jinja text. variables: bos_token and the like, and the settings' template_arguments. controls: names of
    control tokens that no content may become. structural: added tokens that the template writes itself, like <think>
    and <tool_call>: an assistant may write them, other roles may not. clock: the day for templates that ask for it.
    """

    source: str
    variables: Mapping[str, Any] = field(default_factory=dict)
    controls: tuple[str, ...] = ()
    structural: tuple[str, ...] = ()
    clock: str | None = None

    @property
    def digest(self) -> str:
        told = [self.source, dict(sorted(self.variables.items())), self.controls, self.structural, self.clock]
        return xxhash.xxh3_128_hexdigest(json.dumps(told).encode())

    def render(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), *, generation_prompt: bool = False
    ) -> Rendering:
        """The conversation as the template writes it; generation_prompt adds the header of the answer to come.

        Raises Refused: the template raised an error, or a content that spells a control token changed what it does.
        """
        plain = self._write(messages, tools, generation_prompt)
        marked_messages = [self._marked(message) for message in messages]
        marked_tools = [_replaced(tool, self._all_names, _mark) for tool in tools]
        if marked_messages == list(messages) and marked_tools == list(tools):
            return Rendering(plain)
        text, literal = self._unmarked(self._write(marked_messages, marked_tools, generation_prompt))
        if text != plain:
            raise Refused("control_text", "the template treats a control token that a content spells as its own")
        return Rendering(text, literal)

    def _write(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], generation_prompt: bool) -> str:
        compiled = self._compiled
        read = {
            **self.variables,
            "messages": list(messages),
            "tools": list(tools) or None,
            "documents": None,
            "add_generation_prompt": generation_prompt,
        }
        try:
            with within(RENDERING_SECONDS):
                return compiled.render(read)
        except TooLongError:
            raise SftError(
                f"template: a rendering took longer than {RENDERING_SECONDS} s of computing; take a template that ends"
            ) from None
        except Exception as error:  # a template is a program of anyone's, and can fail in any way
            # A message that stands in the template is no content; any other may hold some.
            told = str(error) if isinstance(error, jinja2.TemplateError) and str(error) in self.source else ""
            raise Refused("template_refused", told or type(error).__name__) from None

    @cached_property
    def _compiled(self) -> jinja2.Template:
        parsed = self._parsed
        try:
            return _environment(self.clock).from_string(parsed)
        except Exception as error:
            raise _wrong(error) from None

    @cached_property
    def literals(self) -> str:
        """The template's own text, its string constants among it, NUL between them."""
        told = [node.data for node in self._parsed.find_all(TemplateData)]
        told += [node.value for node in self._parsed.find_all(Const) if isinstance(node.value, str)]
        return "\0".join(told)

    @cached_property
    def _parsed(self) -> Template:
        try:
            return _environment(self.clock).parse(self.source)
        except Exception as error:  # a template is a program of anyone's: RecursionError, MemoryError, ...
            raise _wrong(error) from None

    @cached_property
    def _all_names(self) -> re.Pattern[str] | None:
        return _alternatives((*self.controls, *self.structural))

    @cached_property
    def _control_names(self) -> re.Pattern[str] | None:
        return _alternatives(self.controls)

    def _marked(self, message: Message) -> Message:
        pattern = self._control_names if message["role"] == "assistant" else self._all_names
        return {key: value if key == "role" else _replaced(value, pattern, _mark) for key, value in message.items()}

    def _unmarked(self, text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
        """The text without marks; each mark stood behind the first character of a name."""
        first, *rest = text.split(MARK)
        literal = []
        length, last = len(first), first[-1:]
        for piece in rest:
            found = self._all_names.match(last + piece) if self._all_names else None
            if found is None:
                raise Refused("control_text", "the template takes apart a control token that a content spells")
            literal.append((length - 1, length - 1 + found.end()))
            length, last = length + len(piece), piece[-1:] or last
        return text.replace(MARK, ""), tuple(literal)


def _mark(found: re.Match[str]) -> str:
    return found[0][0] + MARK + found[0][1:]


def _replaced(value: Any, pattern: re.Pattern[str] | None, change: Callable[[re.Match[str]], str]) -> Any:
    """A nested value with `change` applied to each match in its strings; keys stay."""
    if pattern is None:
        return value
    if isinstance(value, str):
        return pattern.sub(change, value)
    if isinstance(value, dict):
        return {key: _replaced(own, pattern, change) for key, own in value.items()}
    return [_replaced(own, pattern, change) for own in value] if isinstance(value, list) else value


def _alternatives(names: Sequence[str]) -> re.Pattern[str] | None:
    longest_first = sorted({name for name in names if len(name) > 1}, key=lambda name: (-len(name), name))
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


class Generation(Extension):
    """{% generation %} blocks, which some templates put around answers: read over, as edges are found by rendering."""

    tags = {"generation"}  # noqa: RUF012 - jinja's own declaration

    def parse(self, parser: Any) -> Node | list[Node]:
        next(parser.stream)
        body: list[Node] = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return body


def _environment(clock: str | None) -> Sandbox:
    """Jinja as transformers sets it up for chat templates (5.24, utils/chat_template_utils.py): names and options."""
    made = Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    made.filters["tojson"] = _to_json
    made.globals["raise_exception"] = _raise
    if clock is not None:
        made.globals["strftime_now"] = date.fromisoformat(clock).strftime
    return made


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _wrong(error: Exception) -> SftError:
    line = f"line {error.lineno}: " if isinstance(error, jinja2.TemplateSyntaxError) else ""
    told = error.message if isinstance(error, jinja2.TemplateSyntaxError) else type(error).__name__
    return SftError(f"template: {line}{' '.join(str(told).split())}; it must be a Jinja chat template")


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


def _unreadable(error: Exception) -> str:
    if isinstance(error, OSError):
        return (error.strerror or type(error).__name__).lower()
    return "not UTF-8"


def template_source(name: str | None, model_folder: str) -> str:
    """The Jinja text of a model folder's template (name None), of one shipped here, or of a file.

    Raises SftError where there is none.
    """
    if name in PRESETS:
        return resources.files("train.sft").joinpath("presets", f"{name}.jinja").read_text("utf-8")
    path = join(model_folder, "chat_template.jinja") if name is None else name
    if exists(path):
        files, local = filesystem(path)
        try:
            return str(files.cat_file(local).decode())
        except (OSError, UnicodeDecodeError) as error:
            raise SftError(f"template: {path}: {_unreadable(error)}; give a Jinja file in UTF-8") from None
    if name is not None:
        raise SftError(f"template: {name}: no such file, nor one of {', '.join(PRESETS)}")
    told = (read_json(join(model_folder, "tokenizer_config.json")) or {}).get("chat_template")
    if isinstance(told, list):  # several, each with a name
        told = {one.get("name"): one.get("template") for one in told if isinstance(one, dict)}.get("default")
    if not isinstance(told, str):
        raise SftError(
            f"{model_folder}: has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json); "
            f"set chat.template to a file or one of {', '.join(PRESETS)}"
        )
    return told

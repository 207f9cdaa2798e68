"""The `format` kind: tags and sections that an answer must have, in order, once each; and tags that must not leak."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from synth.verdicts import Outcome, Verdict
from synth.verifiers.verifier import read_options

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
LEAKED: Final = ("<think>", "</think>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>")
"""Of reasoning and of chat templates (DeepSeek-R1, Qwen, Llama 3): in an answer they are the teacher's own marks."""

_HEADING = re.compile(r"^[ \t]{0,3}(?:#{1,6}[ \t]+)?([*_]{0,3})(?P<name>[^\n]{1,200}?)\1[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Format:
    """What an answer must be made of. DeepSeek-R1's (arXiv:2501.12948) is tags: [think, answer], outside: refuse.

    tags: names of tags, each opened and closed once, in this order, one after another, with something in each.
    outside: text outside the tags is allowed, or refused but for white space. opened: by the model; or by the
        template, whose prompt ends with the first opening tag, so that the answer starts behind it.
    sections: headings, each on a line of its own (with # or emphasis or a colon behind it, or none), once each and in
        this order, with something behind each. Letter case is ignored.
    leaked: texts that must not stand in the answer, letter case ignored; those of `tags` are not looked for.
    min_chars, max_chars: of the whole answer, white space around it aside.
    """

    tags: tuple[Name, ...] = ()
    outside: Literal["allow", "refuse"] = "allow"
    opened: Literal["model", "template"] = "model"
    sections: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = ()
    leaked: tuple[Annotated[str, Field(min_length=1)], ...] = LEAKED
    min_chars: int = Field(default=1, ge=0)
    max_chars: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _once_each(self) -> Format:
        for names in (self.tags, self.sections):
            if len({name.casefold() for name in names}) != len(names):
                raise ValueError("tags and sections must differ from each other")
        return self


class Formats:
    """Right if nothing of the format is broken; else wrong, the first broken rule being the reason. Needs no gold."""

    kind = "format"
    version = "1"

    def verify(self, gold: Any, answer: str, options: Mapping[str, Any]) -> Verdict:
        settings = read_options(Format, options, kind=self.kind)
        broken = broken_rule(answer, settings)
        return Verdict(outcome=Outcome.WRONG if broken else Outcome.RIGHT, reason=broken or "kept")


def broken_rule(answer: str, settings: Format) -> str:
    """The name of the first rule that an answer breaks, "" for none."""
    length = len(answer.strip())
    if length < settings.min_chars:
        return "too_short"
    if settings.max_chars is not None and length > settings.max_chars:
        return "too_long"
    return _tags_rule(answer, settings) or _sections_rule(answer, settings) or _leak_rule(answer, settings)


def _tags_rule(answer: str, settings: Format) -> str:
    text = f"<{settings.tags[0]}>{answer}" if settings.tags and settings.opened == "template" else answer
    spans: list[tuple[int, int, int, int]] = []
    for name in settings.tags:
        opening, closing = f"<{name}>", f"</{name}>"
        if text.count(opening) != 1 or text.count(closing) != 1:
            missing = opening not in text or closing not in text
            return "tag_missing" if missing else "tag_repeated"
        start, end = text.index(opening), text.index(closing)
        if end < start:
            return "tags_out_of_order"
        spans.append((start, start + len(opening), end, end + len(closing)))
    if any(later[0] < earlier[3] for earlier, later in zip(spans, spans[1:], strict=False)):
        return "tags_out_of_order"
    if not all(text[inside:end].strip() for _, inside, end, _ in spans):
        return "tag_empty"
    if settings.outside == "refuse" and spans:
        edges = [0, *(edge for span in spans for edge in (span[0], span[3])), len(text)]
        between = "".join(text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))
        return "text_outside_tags" if between.strip() else ""
    return ""


def _sections_rule(answer: str, settings: Format) -> str:
    if not settings.sections:
        return ""
    wanted = [_plain(name) for name in settings.sections]
    found = [(_plain(match["name"]), match.start(), match.end()) for match in _HEADING.finditer(answer)]
    found = [heading for heading in found if heading[0] in wanted]
    names = [name for name, _, _ in found]
    if missing := set(wanted) - set(names):
        return "section_missing" if missing else ""
    if len(names) != len(wanted):
        return "section_repeated"
    if names != wanted:
        return "sections_out_of_order"
    starts = [start for _, start, _ in found[1:]] + [len(answer)]
    bodies = [answer[end:start] for (_, _, end), start in zip(found, starts, strict=True)]
    return "" if all(body.strip() for body in bodies) else "section_empty"


def _plain(heading: str) -> str:
    return heading.strip().strip("*_").strip().rstrip(":").strip("*_ ").casefold()


def _leak_rule(answer: str, settings: Format) -> str:
    own = {mark for name in settings.tags for mark in (f"<{name}>", f"</{name}>")}
    folded = answer.casefold()
    return "leaked_tag" if any(mark.casefold() in folded for mark in settings.leaked if mark not in own) else ""

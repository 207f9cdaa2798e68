"""Versioned prompt templates, a folder of files each: <name>/<version>/{system,user}.jinja and about.yaml.

render(reference, **values) -> messages    a template, filled in; values are never read as templates
template(reference) -> Template            its texts, variables, version and digest
names() -> names and versions              all that are shipped here

A reference is a name, which takes the latest version, or name@version. With a slash in it, it is the path of a folder
of the user's own (./prompts/cot or ./prompts/cot@2), of the same shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synth.prompts.library import Template, names, template
    from synth.prompts.rendering import render

__all__ = ["Template", "names", "render", "template"]

_HOMES = dict.fromkeys(("Template", "names", "template"), "synth.prompts.library") | {
    "render": "synth.prompts.rendering"
}


def __getattr__(name: str) -> Any:
    # Jinja and YAML are not needed to read a recipe's kinds.
    if name not in _HOMES:
        raise AttributeError(f"module 'synth.prompts' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)

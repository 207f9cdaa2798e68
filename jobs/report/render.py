"""The report's page: the numbers of report.json through templates that escape everything.

Web text is hostile: autoescape is on, no template marks anything safe, no text becomes a link, and the page's policy
forbids scripts and the network.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jobs.report import charts, curves, histograms, mixture_charts, numbers
from jobs.report.visible import line, visible

FOLDER = Path(__file__).parent


def render(report: dict[str, Any]) -> str:
    """The whole page as one string; it needs no other file and no network."""
    return str(_environment().get_template("report.html").render(report=report, styles=_styles()))


def render_mixture(mix: dict[str, Any], name: str) -> str:
    """A page of a mix alone."""
    return str(_environment().get_template("mixture.html").render(mix=mix, name=name, styles=_styles()))


def render_synthesis(made: dict[str, Any], name: str) -> str:
    """A page of a run of synthesis."""
    return str(_environment().get_template("synth.html").render(made=made, name=name, styles=_styles()))


def _styles() -> Any:
    import markupsafe

    # Our own file is the only thing that is not escaped.
    return markupsafe.Markup((FOLDER / "report.css").read_text(encoding="utf-8"))


def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        short=numbers.short,
        whole=numbers.whole,
        plain=numbers.plain,
        size=numbers.size,
        duration=numbers.duration,
        visible=visible,
        line=line,
        told=_told,
        yaml=_yaml,
        share=lambda value: "" if value is None else numbers.percent(value, 1),
    )
    environment.globals.update(
        percent=numbers.percent,
        flow=charts.flow,
        histogram=histograms.histogram,
        columns=charts.columns,
        curves=curves.curves,
        mixture_charts=mixture_charts,
    )
    return environment


def _told(value: Any, most: int = 240) -> str:
    """A setting's value as a person writes it in a recipe."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return line(value, most)
    if isinstance(value, bool):
        return "true" if value else "false"
    return line(json.dumps(value, ensure_ascii=False), most)


def _yaml(value: Any) -> str:
    import yaml

    return visible(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100)) if value else ""

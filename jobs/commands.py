"""What the commands share: how a verb's module is called, and the arguments that many verbs take."""

from __future__ import annotations

import importlib
from typing import Annotated, Any

import typer

from jobs import failures

RecipeArgument = Annotated[str, typer.Argument(metavar="RECIPE", help="The recipe, a YAML file.")]
SettingsArgument = Annotated[str, typer.Argument(metavar="SETTINGS", help="The settings, a YAML file.")]
OutArgument = Annotated[str, typer.Argument(metavar="OUT", help="The output folder of a run.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="One-off change, as minhash.bands=20; may be repeated."),
]
Json = Annotated[bool, typer.Option("--json", help="The answer as JSON on stdout.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="At most so many records of each source.")]
Processes = Annotated[int, typer.Option("--processes", min=1, help="Processes on this machine, started by torchrun.")]


def call(verb: str, *arguments: Any, **options: Any) -> int:
    """Run `jobs.verbs.VERB`, imported only now."""
    module = importlib.import_module(f"jobs.verbs.{verb}")
    with failures.reader_watched():
        code: int = module.run(*arguments, **options)
    return code

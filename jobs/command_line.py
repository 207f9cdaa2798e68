"""The command `gristmill`: a thin shell over `jobs.verbs`, in which nothing heavy is imported before its verb runs.

Results go to stdout, words to stderr. Exit 0 done, 1 failed, 2 wrong use, 3 partial, 130 interrupted.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from jobs import failures
from jobs.budget_command import budget
from jobs.commands import Json, Limit, OutArgument, RecipeArgument, Sets, call
from jobs.mix_commands import mix
from jobs.synth_commands import synth
from jobs.train_commands import export, train

app = typer.Typer(
    name="gristmill",
    help="Turns raw text into audited training data for language models; every document is accounted for.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Engine(StrEnum):
    """What runs the tasks."""

    local = "local"
    spark = "spark"


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"gristmill {version('gristmill')}")
        except PackageNotFoundError:
            typer.echo("gristmill, run from its folder without installation")
        raise typer.Exit


@app.callback()
def _root(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; stands anywhere in a command.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    # --debug is taken out before typer sees it; it stands here for --help.
    del debug, version


@app.command()
def run(  # noqa: PLR0917 - typer reads options from parameters
    recipe: RecipeArgument,
    engine: Annotated[Engine, typer.Option(help="What runs the tasks.")] = Engine.local,
    workers: Annotated[int | None, typer.Option(min=1, help="Tasks at a time; default: the cores.")] = None,
    limit: Limit = None,
    sets: Sets = None,
    json: Json = False,
) -> int:
    """Run a recipe, or what of it is not done yet."""
    return call("run", recipe, engine=engine.value, workers=workers, limit=limit, sets=sets or [], json=json)


@app.command()
def plan(recipe: RecipeArgument, sets: Sets = None, limit: Limit = None, json: Json = False) -> int:
    """Say what would run and why; no work."""
    return call("plan", recipe, sets=sets or [], limit=limit, json=json)


@app.command()
def check(recipe: RecipeArgument, sets: Sets = None, json: Json = False) -> int:
    """Check the recipe, its inputs, extras and disk; no work."""
    return call("check", recipe, sets=sets or [], json=json)


@app.command("try")
def try_(
    recipe: RecipeArgument,
    n: Annotated[int, typer.Option("-n", min=1, help="How many records.")] = 200,
    sets: Sets = None,
    json: Json = False,
) -> int:
    """Run a sample through every step and show what became of it."""
    return call("trial", recipe, n=n, sets=sets or [], json=json)


@app.command()
def why(
    out: OutArgument,
    document: Annotated[str, typer.Argument(metavar="ID", help="A document's id or source_id.")],
    json: Json = False,
) -> int:
    """Tell one document's way through the steps, and what decided."""
    return call("why", out, document, json=json)


@app.command()
def look(
    out: OutArgument,
    dropped: Annotated[
        str | None, typer.Option("--dropped", metavar="STEP[.RULE]", help="What a step or rule dropped.")
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="How many documents.")] = 20,
    json: Json = False,
) -> int:
    """Page through documents, kept or dropped."""
    return call("look", out, dropped=dropped, n=n, json=json)


@app.command()
def sql(
    out: OutArgument,
    query: Annotated[str | None, typer.Argument(metavar="[QUERY]", help="One query; without it, a prompt.")] = None,
    json: Json = False,
) -> int:
    """Ask DuckDB about a run's documents, drops and signals."""
    return call("sql", out, query, json=json)


@app.command()
def whatif(out: OutArgument, sets: Sets = None, json: Json = False) -> int:
    """Count what other thresholds would keep, without a run."""
    return call("whatif", out, sets=sets or [], json=json)


@app.command()
def report(out: OutArgument) -> int:
    """Write one self-contained HTML file about a run."""
    return call("report", out)


@app.command()
def explain(
    step: Annotated[str | None, typer.Argument(metavar="[STEP]", help="A kind of step; without it, all.")] = None,
    json: Json = False,
) -> int:
    """Explain a step: settings, defaults, rules, their source."""
    return call("explain", step, json=json)


@app.command()
def doctor(json: Json = False) -> int:
    """Look over this installation and machine."""
    return call("doctor", json=json)


app.command()(export)
app.command()(budget)
app.add_typer(mix, name="mix")
app.add_typer(train, name="train")
app.add_typer(synth, name="synth")


def invoke(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; whatever goes wrong is told on stderr in a line."""
    debug, words = failures.debug_flag(arguments)
    with failures.told(debug) as outcome:
        outcome.code = app(words, prog_name="gristmill", standalone_mode=False) or 0
        sys.stdout.flush()
    return outcome.code


def main() -> None:
    """The entry point of the console script."""
    # A terminal or pipe that is not UTF-8 shows what it has no letters for as numbers, rather than nothing at all.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(invoke(sys.argv[1:]))


if __name__ == "__main__":
    main()

"""`gristmill mix ...`."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from jobs import commands
from jobs.commands import Json, Sets, SettingsArgument

TablesArgument = Annotated[
    list[str],
    typer.Argument(metavar="TABLE...", help="Observations: CSV, Parquet, a folder of proxies or of a mix; pooled."),
]
SettingsFile = Annotated[
    str | None, typer.Option("--settings", metavar="FILE", help="A YAML file: objective, constraints, law, tokens.")
]
Losses = Annotated[
    str | None, typer.Option("--losses", metavar="FILE", help="The metrics of one table's runs, joined by name.")
]
Only = Annotated[
    list[str] | None, typer.Option("--only", metavar="COLUMN=VALUE", help="Rows to take; may be repeated.")
]

mix = typer.Typer(
    help="Find domain ratios: laws, optima, what to try next.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def call(verb: str, *arguments: Any, **options: Any) -> int:
    """Run a verb with one thread of linear algebra: on small matrices several wait for each other, a hundredfold where
    the machine is busy. numpy reads it when it is loaded."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return commands.call(verb, *arguments, **options)


@mix.command("run")
def run(settings: SettingsArgument, sets: Sets = None, json: Json = False) -> int:
    """Propose, train proxies, fit, optimise: a mixture from token shards."""
    return call("mix.run", settings, sets=sets or [], json=json)


@mix.command("fit")
def fit(  # noqa: PLR0917 - typer reads options from parameters
    tables: TablesArgument,
    losses: Losses = None,
    only: Only = None,
    settings: SettingsFile = None,
    sets: Sets = None,
    json: Json = False,
) -> int:
    """Fit laws to observations; say which predict best, and how well."""
    return call("mix.fit", tables, losses=losses, only=only or [], settings=settings, sets=sets or [], json=json)


@mix.command("predict")
def predict(  # noqa: PLR0917 - typer reads options from parameters
    tables: TablesArgument,
    at: Annotated[
        list[str] | None,
        typer.Option("--at", metavar="MIXTURE", help="A mixture file, or web=0.7,code=0.3; may be repeated."),
    ] = None,
    losses: Losses = None,
    only: Only = None,
    settings: SettingsFile = None,
    sets: Sets = None,
    json: Json = False,
) -> int:
    """Predict the metrics of mixtures, with intervals."""
    return call(
        "mix.predict",
        tables,
        at=at or [],
        losses=losses,
        only=only or [],
        settings=settings,
        sets=sets or [],
        json=json,
    )


@mix.command("optimize")
def optimize(  # noqa: PLR0917 - typer reads options from parameters
    tables: TablesArgument,
    losses: Losses = None,
    only: Only = None,
    settings: SettingsFile = None,
    output: Annotated[
        str | None, typer.Option("--output", metavar="FILE", help="Where to write the mixture, for train and export.")
    ] = None,
    sets: Sets = None,
    json: Json = False,
) -> int:
    """The best mixture under constraints, what each costs, and how flat it is."""
    return call(
        "mix.optimize",
        tables,
        losses=losses,
        only=only or [],
        settings=settings,
        output=output,
        sets=sets or [],
        json=json,
    )


@mix.command("propose")
def propose(  # noqa: PLR0917 - typer reads options from parameters
    tables: Annotated[
        list[str] | None, typer.Argument(metavar="[TABLE...]", help="Observations so far; none for first runs.")
    ] = None,
    domains: Annotated[
        str | None, typer.Option("--domains", metavar="A,B,C", help="The domains, where there is no table yet.")
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="How many runs.")] = 8,
    losses: Losses = None,
    only: Only = None,
    settings: SettingsFile = None,
    sets: Sets = None,
    json: Json = False,
) -> int:
    """Which mixtures to try next, as CSV for `gristmill train proxies`."""
    return call(
        "mix.propose",
        tables or [],
        domains=domains,
        n=n,
        losses=losses,
        only=only or [],
        settings=settings,
        sets=sets or [],
        json=json,
    )


@mix.command("observe")
def observe(
    out: Annotated[str, typer.Argument(metavar="OUT", help="A run with a mix: section, or the folder of a mix.")],
    tables: Annotated[list[str], typer.Argument(metavar="TABLE...", help="What was measured since: CSV or Parquet.")],
    json: Json = False,
) -> int:
    """Feed back what was measured since; the next run fits and optimises anew."""
    return call("mix.observe", out, tables, json=json)

"""`gristmill train ...`, `gristmill budget` and `gristmill export`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from jobs.commands import Json, OutArgument, Processes, Sets, SettingsArgument, call


class Verify(StrEnum):
    """How much an audit reads again."""

    all = "all"
    sample = "sample"
    none = "none"


train = typer.Typer(
    help="Train on token shards, and prove what was trained on.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@train.command("tokenizers")
def tokenizers(
    out: OutArgument,
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="tokenizer.json, .model or .tiktoken files.")],
    plot: Annotated[str | None, typer.Option("--plot", metavar="FILE.svg", help="Where to draw it.")] = None,
    sample_bytes: Annotated[int, typer.Option("--sample-bytes", min=1, help="Text of a domain and language.")] = 1
    << 20,
    json: Json = False,
) -> int:
    """Compare tokenizers on a run's documents, by domain and language."""
    return call("train.tokenizers", out, files, plot=plot, sample_bytes=sample_bytes, json=json)


@train.command("pretrain")
def pretrain(settings: SettingsArgument, processes: Processes = 1, sets: Sets = None, json: Json = False) -> int:
    """Pretrain a model on token shards, or go on where it stopped."""
    return call("train.pretrain", settings, processes=processes, sets=sets or [], json=json)


@train.command("sft")
def sft(settings: SettingsArgument, processes: Processes = 1, sets: Sets = None, json: Json = False) -> int:
    """Fine-tune a model on conversations."""
    return call("train.sft", settings, processes=processes, sets=sets or [], json=json)


@train.command("proxies")
def proxies(
    settings: SettingsArgument,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed runs again.")] = False,
    sets: Sets = None,
    json: Json = False,
) -> int:
    """Train small models on many mixtures; write a table of observations."""
    return call("train.proxies", settings, retry_failed=retry_failed, sets=sets or [], json=json)


@train.command("audit")
def audit(  # noqa: PLR0917 - typer reads options from parameters
    run: Annotated[str, typer.Argument(metavar="RUN", help="The folder of a training run, or of the run it is of.")],
    shards: Annotated[
        list[str] | None, typer.Option("--shards", metavar="DIR", help="Where its tokens are now; may be repeated.")
    ] = None,
    steps: Annotated[str | None, typer.Option("--steps", metavar="A:B", help="Steps A to B-1; default: all.")] = None,
    document: Annotated[str | None, typer.Option("--document", metavar="ID", help="When it was trained on.")] = None,
    verify: Annotated[Verify, typer.Option("--verify", help="Which steps to make again and compare.")] = Verify.all,
    json: Json = False,
) -> int:
    """Prove what a training run saw: nothing lost, nothing repeated."""
    return call("train.audit", run, shards=shards, steps=steps, document=document, verify=verify.value, json=json)


def export(  # noqa: PLR0917 - typer reads options from parameters
    out: OutArgument,
    to: Annotated[str | None, typer.Option("--to", metavar="FORMAT", help="The format; without it, all.")] = None,
    destination: Annotated[
        str | None, typer.Option("--destination", metavar="DIR", help="A new folder; default: OUT/exports/FORMAT.")
    ] = None,
    domains: Annotated[
        list[str] | None, typer.Option("--domain", metavar="NAME", help="Only this domain; may be repeated.")
    ] = None,
    together: Annotated[bool, typer.Option("--together", help="All domains as one, not files for each.")] = False,
    mixture: Annotated[
        str | None, typer.Option("--mixture", metavar="FILE", help="A mixture.json; weights as the program takes them.")
    ] = None,
    sets: Sets = None,
    json: Json = False,
) -> int:
    """Write token shards or documents in another program's format."""
    return call(
        "export", out, to=to, destination=destination, domains=domains, together=together, mixture=mixture,
        sets=sets or [], json=json,
    )  # fmt: skip

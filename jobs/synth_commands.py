"""`gristmill synth ...`."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.commands import Json, Sets, SettingsArgument, call

Made = Annotated[
    str, typer.Argument(metavar="OUT", help="The output of gristmill synth run, or of a run with a section synth:.")
]

synth = typer.Typer(
    help="Make data with teachers: ask, verify, select, export.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@synth.command("plan")
def plan(settings: SettingsArgument, sets: Sets = None, json: Json = False) -> int:
    """What a run would ask, take and cost; nothing is asked."""
    return call("synth.plan", settings, sets=sets or [], json=json)


@synth.command("run")
def run(settings: SettingsArgument, sets: Sets = None, json: Json = False) -> int:
    """Run tasks against teachers, or go on where it stopped."""
    return call("synth.run", settings, sets=sets or [], json=json)


@synth.command("status")
def status(out: Made, json: Json = False) -> int:
    """The account of a run, also while it runs."""
    return call("synth.status", out, json=json)


@synth.command("verify")
def verify(settings: SettingsArgument, sets: Sets = None, json: Json = False) -> int:
    """Verdicts anew from stored replies; no teacher is asked."""
    return call("synth.verify", settings, sets=sets or [], json=json)


@synth.command("report")
def report(out: Made) -> int:
    """Write synth.html: what was made, what was not and why."""
    return call("synth.report", out)


@synth.command("export")
def export(  # noqa: PLR0917 - typer reads options from parameters
    out: Made,
    destination: Annotated[str, typer.Argument(metavar="DESTINATION", help="A new folder.")],
    to: Annotated[
        str, typer.Option("--to", metavar="FORMAT", help="sft, prompt_completion, dpo, rlvr, documents, labels, steps.")
    ] = "sft",
    model: Annotated[
        str | None, typer.Option("--model", metavar="FOLDER", help="Whose tokenizer and template prove each row.")
    ] = None,
    settings: Annotated[
        str | None, typer.Option("--settings", metavar="FILE", help="A YAML file: licences, terms, file, max_refused.")
    ] = None,
    sets: Sets = None,
    json: Json = False,
) -> int:
    """The selected samples as a dataset with its card."""
    return call("synth.export", out, destination, to=to, model=model, settings=settings, sets=sets or [], json=json)


@synth.command("teacher")
def teacher(
    folder: Annotated[
        str | None, typer.Option("--folder", metavar="DIR", help="Of the converted model; default: the user's cache.")
    ] = None,
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Of 127.0.0.1.")] = 8000,
) -> int:
    """Serve a small real teacher on a CPU: SmolLM2-135M on vLLM."""
    return call("synth.teacher", folder=folder, port=port)

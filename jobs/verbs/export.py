"""`gristmill export OUT --to FORMAT`: token shards or documents as another program's files."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence
from typing import Any

from jobs.errors import UserError, nearest
from jobs.recipe_lines import Tree, parse_value
from jobs.sizes import parse_size
from shards.store import join


def run(
    out: str,
    *,
    to: str | None = None,
    destination: str | None = None,
    domains: Sequence[str] | None = None,
    together: bool = False,
    mixture: str | None = None,
    sets: Sequence[str] = (),
    json: bool = False,
) -> int:
    """Write the files, and print where they lie and how much they hold; without `to`, list the formats."""
    from dataclasses import asdict

    from train.exports import FORMATS, export
    from train.exports.exporting import settings_of

    if to is None:
        print(json_format.dumps(FORMATS, indent=1) if json else "\n".join(f"{n:<12} {t}" for n, t in FORMATS.items()))
        return 0
    if to not in FORMATS:
        raise UserError(f"--to {to}: is no format; {nearest(to, FORMATS, what='formats')}")
    if mixture is not None:
        from mixing.loop import read_mixture

        asked = read_mixture(mixture)  # before anything is written
    exported = export(
        out,
        to,
        destination or join(out, "exports", to),
        domains=list(domains) if domains else None,
        by_domain=not together,
        **options(sets, to, settings_of(to)),
    )
    if mixture is not None:
        from mixing.loop.blending import blend

        blend(asked, exported.destination)
    if json:
        print(json_format.dumps(asdict(exported), indent=1))
    else:
        held = f"{exported.documents:,} documents" + (f", {exported.tokens:,} tokens" if exported.tokens else "")
        print(f"{exported.destination}: {held} in {len(exported.files)} files", file=sys.stderr)
        for reason, counts in exported.left_out.items():
            left = " and ".join(f"{counts[what]:,} {what}" for what in ("documents", "tokens") if counts[what])
            print(f"left out: {left} ({reason})", file=sys.stderr)
    return 0


def options(sets: Sequence[str], to: str, known: Sequence[str]) -> dict[str, Any]:
    """The format's settings from --set KEY=VALUE, read as YAML; raises MistakesError. known: the settings it has."""
    tree = Tree(label="export")
    found: dict[str, Any] = {}
    for index, text in enumerate(sets):
        key, equals, value = text.partition("=")
        here = (f"--set {index}",)
        tree.origins[here] = f"--set {text}"
        if not equals or not key.strip().isidentifier():
            tree.add(here, "is not KEY=VALUE; write for example --set sequence_tokens=2048")
            continue
        name = key.strip()
        if name not in known:
            tree.add(here, f"no setting of {to}; {nearest(name, known, what='its settings')}")
            continue
        made = parse_value(value, here, tree)
        try:
            found[name] = parse_size(made) if name.endswith("_bytes") else made
        except ValueError as error:
            tree.add(here, str(error))
    tree.check()
    return found

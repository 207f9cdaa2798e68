"""`python -m demo`: collect the corpus, run recipes/quickstart.yaml on it by the command line, say what to try next."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from demo.corpus import build

ROOT = Path(__file__).resolve().parent.parent
RECIPE = "recipes/quickstart.yaml"
CORPUS = "out/quickstart-corpus"
OUTPUT = "out/quickstart"

RULES = "SELECT step, rule, count(*) AS documents FROM dropped GROUP BY ALL ORDER BY documents DESC, rule LIMIT 10"
# The near-duplicate whose survivor is least like it: the removal most worth a look.
DUPLICATE = "SELECT id FROM duplicates ORDER BY method = 'exact', similarity, id LIMIT 1"


def main() -> int:
    """Returns the exit code of `gristmill run`."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--workers", type=int, default=2, help="tasks at a time (default: 2)")
    workers = parser.parse_args().workers
    os.chdir(ROOT)  # a recipe's paths are relative to where it is run
    started = time.monotonic()
    say("crawling this Python's documentation over HTTP on loopback, collecting sources and descriptions ...")
    told = build(Path(CORPUS))
    say(f"{CORPUS}: pages by status {told['pages']}, {told['sources']} sources, {told['descriptions']} descriptions")
    say(f"gristmill run {RECIPE} --workers {workers}")
    done = gristmill("run", RECIPE, "--workers", str(workers)).returncode
    if done == 0:
        say(f"done in {time.monotonic() - started:.0f} s. The report: {OUTPUT}/report.html")
        say("Three queries to try:")
        for query in queries():
            say(f"  {query}")
    return done


def queries() -> list[str]:
    """Three commands that show what became of the corpus, with an id that is in it."""
    command = os.path.relpath(executable())
    answer = gristmill("sql", OUTPUT, DUPLICATE, "--json", stdout=subprocess.PIPE)
    rows = json.loads(answer.stdout) if answer.returncode == 0 else []
    rows = rows if isinstance(rows, list) else rows.get("rows", [])
    found = rows[0]["id"] if rows else "ID"
    return [
        f'{command} sql {OUTPUT} "{RULES}"',
        f"{command} why {OUTPUT} {found}",
        f"{command} look {OUTPUT} --dropped quality -n 5",
    ]


def gristmill(*arguments: str, stdout: int | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run the installed command as a person would."""
    return subprocess.run([executable(), *arguments], stdout=stdout, check=False)


def executable() -> Path:
    """The command of the environment that this runs in."""
    return Path(sys.executable).with_name("gristmill")


def say(line: str) -> None:
    """To stdout at once, so that lines of child processes stay in order with it."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())

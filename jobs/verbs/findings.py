"""What `check` and `doctor` found: a line each, with a state and, where it is not well, what mends it."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["ok", "off", "warn", "bad"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at. `off` is something optional that is not there; `mend` says what to do."""

    what: str
    state: State
    found: str
    mend: str = ""


def show(findings: Sequence[Finding], *, json: bool, **more: Any) -> int:
    """Print the findings to stdout, as a table or JSON, and return the exit code: 1 if anything is bad."""
    bad = any(finding.state == "bad" for finding in findings)
    if json:
        print(
            json_format.dumps({**more, "ok": not bad, "findings": [asdict(finding) for finding in findings]}, indent=2)
        )
    else:
        width = max(len(finding.what) for finding in findings)
        for finding in findings:
            mend = f"; {finding.mend}" if finding.mend else ""
            print(f"{finding.state:4}  {finding.what:{width}}  {finding.found}{mend}")
    return int(bad)


def from_error(what: str, error: BaseException, mend: str = "") -> Finding:
    """A bad finding of an exception whose message is `what is wrong; what would be right`."""
    if isinstance(error, OSError) and error.strerror:
        said = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        said = str(error).partition("\n")[0] or type(error).__name__
    found, _, right = said.partition("; ")
    return Finding(what=what, state="bad", found=found, mend=right or mend)

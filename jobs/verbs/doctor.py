"""`gristmill doctor`: is this installation well, and what has this machine?"""

from __future__ import annotations

import multiprocessing
import os
import platform
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from jobs.sizes import show_size
from jobs.verbs import machine
from jobs.verbs.findings import Finding, show

ROOT = Path(__file__).resolve().parents[2]
LEAST_FREE = 1 << 30
LEAST_MEMORY = 2 << 30
LEAST_FILES = 1024
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def run(*, json: bool = False) -> int:
    """Print what was found; returns 1 where something is bad."""
    return show(list(findings()), json=json)


def findings() -> Iterator[Finding]:
    """All that is looked at: Python, packages, Java, the machine, compiled code."""
    python = platform.python_version()
    old = sys.version_info < (3, 11)
    yield Finding(
        what="python", state="bad" if old else "ok", found=python, mend="install Python 3.11 or newer" if old else ""
    )
    for requirement in _requirements():
        yield _package(requirement)
    yield machine.spark()
    yield _extra("train", "tokenizers", "the tokens: section of a recipe")
    yield _extra("mix", "scipy", "the mix: section of a recipe")
    yield _extra("synth", "aiohttp", "the synth: section of a recipe")
    yield from _machine()
    yield _compiled()
    yield _forks()


def _requirements() -> list[str]:
    """What pyproject.toml asks for, without the extras."""
    try:
        told = requires("gristmill") or []
    except PackageNotFoundError:
        with open(ROOT / "pyproject.toml", "rb") as stream:
            told = list(tomllib.load(stream)["project"]["dependencies"])
    return sorted(requirement for requirement in told if "extra ==" not in requirement)


def _package(requirement: str) -> Finding:
    match = _NAME.match(requirement)
    name = match[0] if match else requirement
    installed = machine.version(name)
    mend = f"pip install '{requirement}'"
    if installed is None:
        return Finding(what=name, state="bad", found="not installed", mend=mend)
    if not _fits(installed, requirement[len(name) :]):
        wanted = requirement[len(name) :]
        return Finding(what=name, state="warn", found=f"{installed}, tested with {wanted}", mend=mend)
    return Finding(what=name, state="ok", found=installed)


def _fits(installed: str, wanted: str) -> bool:
    try:
        from packaging.specifiers import SpecifierSet
    except ImportError:
        return True
    return SpecifierSet(wanted.partition(";")[0].strip()).contains(installed, prereleases=True)


def _extra(extra: str, distribution: str, purpose: str) -> Finding:
    installed = machine.version(distribution)
    if installed is None:
        mend = f"for {purpose}: pip install 'gristmill[{extra}]'"
        return Finding(what=extra, state="off", found=f"{distribution} is not installed", mend=mend)
    return Finding(what=extra, state="ok", found=f"{distribution} {installed}")


def _machine() -> Iterator[Finding]:
    yield Finding(what="cores", state="ok", found=str(machine.cores()))
    memory = machine.memory()
    each = show_size(memory // machine.cores())
    little = memory // machine.cores() < LEAST_MEMORY
    mend = "run fewer --workers than cores, or lower memory_bytes" if little else ""
    found = f"{show_size(memory)}, {each} a core"
    yield Finding(what="memory", state="warn" if little else "ok", found=found, mend=mend)
    for what, folder in (("disk here", os.getcwd()), ("disk for temporary files", tempfile.gettempdir())):
        free = machine.free(folder)
        full = free < LEAST_FREE
        mend = "free some space, or set TMPDIR" if full else ""
        yield Finding(what=what, state="warn" if full else "ok", found=f"{show_size(free)} free", mend=mend)
    yield _open_files()


def _open_files() -> Finding:
    try:
        import resource
    except ImportError:
        return Finding(what="open files", state="off", found="no limit is told here")
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = soft != resource.RLIM_INFINITY and soft < LEAST_FILES
    mend = f"ulimit -n {4 * LEAST_FILES}" if few else ""
    return Finding(what="open files", state="warn" if few else "ok", found=str(soft), mend=mend)


def _compiled() -> Finding:
    """Numba keeps compiled kernels beside the code, or where NUMBA_CACHE_DIR says."""
    told = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(told) if told else ROOT / "text" / "__pycache__"
    kept = len(list(folder.rglob("*.nbi"))) if folder.is_dir() else 0
    if not os.access(machine.existing(str(folder)), os.W_OK) and not kept:
        mend = "set NUMBA_CACHE_DIR to a folder that you may write, or each run compiles anew"
        return Finding(what="compiled code", state="warn", found=f"no permission to write in {folder}", mend=mend)
    if not kept:
        mend = "the first run compiles it; or now: python -c 'import text; text.compile()'"
        return Finding(what="compiled code", state="ok", found="none yet", mend=mend)
    return Finding(what="compiled code", state="ok", found=f"{machine.count(kept, 'kernel')} in {folder}")


def _forks() -> Finding:
    if "fork" in multiprocessing.get_all_start_methods() and sys.platform == "linux":
        return Finding(what="workers", state="ok", found="fork, each task in a process of its own")
    mend = "run on Linux, in a container for example"
    return Finding(what="workers", state="warn", found=f"{sys.platform} is not tested", mend=mend)

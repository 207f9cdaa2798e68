"""What this machine and this installation have: packages, Java, cores, memory, disk."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from jobs.verbs.findings import Finding

JAVA = 17
"""Spark 4 needs Java 17 or newer (spark.apache.org/docs/4.0.0, overview)."""

_CGROUP = Path("/sys/fs/cgroup")


def version(distribution: str) -> str | None:
    """The installed version of a distribution, None where it is absent."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def missing(distributions: Sequence[str]) -> list[str]:
    """Those that are not installed."""
    return [name for name in distributions if version(name) is None]


def java() -> tuple[int | None, str]:
    """The major version of the Java that Spark would use, and its path; (None, "") where there is none."""
    home = os.environ.get("JAVA_HOME")
    path = os.path.join(home, "bin", "java") if home else shutil.which("java") or ""
    try:
        told = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=20, check=False).stderr
    except (OSError, ValueError, subprocess.SubprocessError):
        return None, path
    match = re.search(r'version "(?:1\.)?([0-9]+)', told)
    return (int(match[1]) if match else None), path


def spark() -> Finding:
    """Whether `--engine spark` can run here."""
    pyspark = version("pyspark")
    if pyspark is None:
        return Finding(
            what="spark", state="off", found="pyspark is not installed", mend="pip install 'gristmill[spark]'"
        )
    major, path = java()
    mend = f"install Java {JAVA} (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    if major is None:
        return Finding(what="spark", state="off", found=f"pyspark {pyspark}, no Java", mend=mend)
    found = f"pyspark {pyspark}, Java {major} at {path}"
    if major < JAVA:
        return Finding(what="spark", state="warn", found=found, mend=mend)
    return Finding(what="spark", state="ok", found=found)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory() -> int:
    """Bytes of memory that this process may use: the machine's, or its control group's if that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _CGROUP / "memory.max"
    try:
        told = limit.read_text().strip()
    except OSError:
        return total
    return min(total, int(told)) if told.isdigit() else total


def free(folder: str) -> int:
    """Free bytes of the disk that a folder is on."""
    return shutil.disk_usage(folder).free


def existing(path: str) -> str:
    """The nearest of `path` and what is above it that exists."""
    found = os.path.abspath(path)
    while not os.path.exists(found):
        found = os.path.dirname(found)
    return found


def count(number: int, noun: str) -> str:
    """3 files, 1 file."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

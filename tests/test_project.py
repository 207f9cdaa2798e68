"""What holds for the tree as a whole: its rooms, its dependencies, its documents, and how quickly its help answers."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import statistics
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from jobs.steps import STEPS

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("shards", "text", "ingest", "filters", "dedup", "train", "mixing", "synth", "jobs")
PINS, TEACHER_PINS = "constraints.txt", "constraints-teacher.txt"
READERS = "tests/train/exports/readers/"
# The median of five, on a machine that may be busy with the other tests: what is promised is 0.3.
HELP_S = 0.3


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """Files that git knows; the tree itself where this is no checkout."""
    asked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if asked.returncode == 0:
        return [path for name in asked.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()]
    return [path for path in ROOT.rglob("*") if path.is_file() and not path.relative_to(ROOT).parts[0].startswith(".")]


def test_imports_point_one_way() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout[-3000:] + told.stderr[-3000:]


def test_installed_packages_are_the_rooms_with_their_inner_folders(project: dict[str, Any]) -> None:
    listed = project["tool"]["setuptools"]["packages"]
    found = sorted(
        ".".join(path.parent.relative_to(ROOT).parts) for room in ROOMS for path in (ROOT / room).rglob("__init__.py")
    )
    assert sorted(listed) == found
    assert not [name for name in listed if name.split(".")[0] in {"tests", "demo", "bench", "recipes", "docs"}]


def test_every_data_file_of_a_room_is_installed(project: dict[str, Any], tracked: list[Path]) -> None:
    patterns = project["tool"]["setuptools"]["package-data"]["*"]
    packages = {ROOT.joinpath(*name.split(".")) for name in project["tool"]["setuptools"]["packages"]}
    left = []
    for path in tracked:
        if path.suffix == ".py" or path.relative_to(ROOT).parts[0] not in ROOMS:
            continue
        package = next(folder for folder in path.parents if folder in packages)
        inside = path.relative_to(package)
        same_depth = [pattern for pattern in patterns if len(Path(pattern).parts) == len(inside.parts)]
        if not any(inside.match(pattern) for pattern in same_depth):
            left.append(path.relative_to(ROOT).as_posix())
    assert not left, "not matched by [tool.setuptools.package-data]"


def test_every_import_is_a_declared_dependency(project: dict[str, Any]) -> None:
    """An import that works because another package brings it along breaks on the day that package stops."""
    declared = {_distribution(entry) for entry in project["project"]["dependencies"]}
    extras = project["project"]["optional-dependencies"]
    optional = {extra: {_distribution(entry) for entry in entries} for extra, entries in extras.items()}
    allowed = dict.fromkeys(ROOMS, declared | optional["spark"] | optional["train"] | optional["mix"]) | {
        "synth": declared | optional["synth"] | optional["train"] | optional["teacher"],
        "demo": declared,
        "tests": declared.union(*optional.values()),
        "bench": declared.union(*optional.values()),
    }
    owners = {**importlib.metadata.packages_distributions(), "vllm": ["vllm"]}  # it has an environment of its own
    undeclared = set()
    for folder, known in allowed.items():
        for name, where in _imports(ROOT / folder):
            if where.startswith(READERS):  # run in the environment that .ci/oracles.sh makes
                continue
            distributions = {_canonical(owner) for owner in owners.get(name, [])}
            if not distributions & known:
                undeclared.add(f"{where}: {name}")
    assert not undeclared


def _imports(folder: Path) -> set[tuple[str, str]]:
    own = {path.name for path in ROOT.iterdir() if path.is_dir()} | set(sys.stdlib_module_names)
    found = set()
    for path in folder.rglob("*.py"):
        inner = own | {other.stem for other in path.parent.glob("*.py")}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [node.module]
            tops = {name.split(".")[0] for name in names}
            found |= {(top, path.relative_to(ROOT).as_posix()) for top in tops - inner}
    return found


def _distribution(requirement: str) -> str:
    return _canonical(Requirement(requirement).name)


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_requirement_is_pinned_within_its_range(project: dict[str, Any]) -> None:
    extras = dict(project["project"]["optional-dependencies"])
    del extras["teacher"]  # for GPUs: its versions depend on the machine's CUDA
    _assert_pinned([*project["project"]["dependencies"], *extras["synth"], *extras.pop("teacher-cpu")], TEACHER_PINS)
    _assert_pinned(
        [*project["project"]["dependencies"], *(entry for extra in extras.values() for entry in extra)], PINS
    )


def _assert_pinned(entries: list[str], name: str) -> None:
    lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
    pins = {_canonical(line.split("==")[0]): line.split("==")[1] for line in lines}
    for entry in entries:
        requirement = Requirement(entry)
        pin = pins.get(_canonical(requirement.name))
        assert pin is not None, f"{entry} is not in {name}; see: make pins"
        assert requirement.specifier.contains(pin), f"{entry}, but {name} has {pin}; see: make pins"


# Spelt so that this file does not hold what it forbids.
FORBIDDEN = {
    "a folder of one machine": re.compile(r"(?<![\w.])/" + r"(?:work|tmp|root|home)/(?!nonexistent)[\w.]"),
    "a registry's host": re.compile(r"pypi\." + r"org|files\.python" + r"hosted|registry\.npmjs|deb\." + r"debian"),
    "a key": re.compile(r"AKIA" + r"[0-9A-Z]{16}|-----BEGIN [A-Z ]*PRIVATE" + r" KEY-----|hf_[A-Za-z0-9]{30}"),
}


def test_no_file_names_one_machine_or_holds_a_key(tracked: list[Path]) -> None:
    found = []
    for path in tracked:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for what, pattern in FORBIDDEN.items():
            found += [f"{path.relative_to(ROOT)}: {what}: {hit.group()}" for hit in pattern.finditer(text)]
    assert not found


def test_no_large_file_is_tracked(tracked: list[Path]) -> None:
    large = {
        path.relative_to(ROOT).as_posix(): path.stat().st_size for path in tracked if path.stat().st_size > 2 << 20
    }
    assert not large


def test_help_answers_quickly() -> None:
    """As installed: the command's own start is part of what a person waits for."""
    command = [str(Path(sys.executable).with_name("gristmill"))]
    if not Path(command[0]).exists():  # run from the tree without installation
        command = [sys.executable, "-c", "from jobs.command_line import main; main()"]
    seconds = []
    for _ in range(6):
        started = time.perf_counter()
        subprocess.run([*command, "--help"], cwd=ROOT, capture_output=True, check=True)
        seconds.append(time.perf_counter() - started)
    # The first call writes byte code.
    median = statistics.median(seconds[1:])
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    assert median < HELP_S * max(1.0, busy), f"{median:.2f} s at a load of {busy:.1f} a core"


def test_every_kind_of_step_is_documented() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))
    missing = [kind for kind in STEPS if not re.search(rf"`(?:step: )?{kind}`", pages)]
    assert not missing, "no page in docs/ names these steps in backticks"


def test_the_readme_asks_for_two_commands() -> None:
    """Everything else in its blocks is what those two print, or gristmill itself."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert {"make demo", "make test"} <= set(re.findall(r"make [a-z-]+", text))
    blocks = re.findall(r"```(?:console|sh|bash|text)?\n(.*?)```", text, flags=re.DOTALL)
    typed = [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    set_up = [line for line in typed if re.match(r"(?:pip|python|uv|apt|apt-get|brew|source|export)\b", line)]
    assert not set_up, "make does all of the set-up"

"""Finds templates and reads them: which folder a reference means, what it needs, and a digest of what it asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from synth.errors import SynthError
from synth.requests import digest

SHIPPED: Final = Path(__file__).parent
ROLES: Final = ("system", "user")


@dataclass(frozen=True, kw_only=True)
class Template:
    """A prompt of one version.

    name, version: what it is called; facts of a sample name it so. purpose, source, licence: of about.yaml.
    variables: each value that it needs, and what for. defaults: of those that need not be given. texts: the Jinja
    text of each role that it has, in the conversation's order. files: where each stands, for errors.
    """

    name: str
    version: int
    purpose: str
    source: str
    licence: str
    variables: Mapping[str, str]
    defaults: Mapping[str, Any]
    texts: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def title(self) -> str:
        """name@version."""
        return f"{self.name}@{self.version}"

    @property
    def digest(self) -> str:
        """Of all that decides what is asked, wherever the files lie: part of a task's fingerprint."""
        return digest([dict(self.texts), dict(self.defaults)])


@lru_cache(maxsize=1024)
def template(reference: str) -> Template:
    """The template of a reference. Raises SynthError where there is none, or its files do not fit together.

    Read once a process: a run does not mix two states of a file that is edited meanwhile.
    """
    path, _, version = reference.partition("@")
    folder = Path(path) if "/" in path else SHIPPED / path
    there = _versions(folder) if path.strip("./") else {}
    if not there:
        known = f"a folder of versions (1, 2 ...) is wanted there; {folder.resolve()} has none"
        shipped = f"no such template; there are {', '.join(sorted(names()))}"
        raise SynthError(f"prompt {reference!r}: {known if '/' in path else shipped}")
    if "@" in reference and version not in {str(number) for number in there}:
        numbers = ", ".join(str(number) for number in sorted(there))
        raise SynthError(f"prompt {reference!r}: no such version; there are {numbers}")
    return _read(folder.name, int(version) if version else max(there), there)


def names() -> dict[str, tuple[int, ...]]:
    """The templates that are shipped, and their versions."""
    found = {folder.name: tuple(sorted(_versions(folder))) for folder in sorted(SHIPPED.iterdir())}
    return {name: versions for name, versions in found.items() if versions}


def _versions(folder: Path) -> dict[int, Path]:
    if not folder.is_dir():
        return {}
    inside = (entry for entry in folder.iterdir() if entry.name.isascii() and entry.name.isdigit())
    return {int(entry.name): entry for entry in inside if (entry / "about.yaml").is_file()}


def _read(name: str, version: int, versions: Mapping[int, Path]) -> Template:
    folder = versions[version]
    about = _about(folder / "about.yaml")
    files = {role: folder / f"{role}.jinja" for role in ROLES}
    texts = {role: _text(file) for role, file in files.items() if file.is_file()}
    if "user" not in texts:
        raise SynthError(f"{folder / 'user.jinja'}: no such file; what the user's turn says is wanted there")
    made = Template(
        name=name, version=version, texts=texts, files={role: str(files[role]) for role in texts}, **about
    )  # fmt: skip
    from synth.prompts.rendering import check

    check(made)
    return made


def _about(file: Path) -> dict[str, Any]:
    import yaml

    try:
        about = yaml.safe_load(_text(file)) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        raise SynthError(f"{file}: {line}not YAML; write purpose, source, licence and variables") from None
    if not isinstance(about, dict):
        raise SynthError(f"{file}: not a mapping; write purpose, source, licence and variables")
    wanted = {"purpose": str, "source": str, "licence": str, "variables": dict, "defaults": dict}
    if unknown := sorted(str(key) for key in set(about) - set(wanted)):
        raise SynthError(f"{file}: {unknown[0]}: unknown; there are {', '.join(wanted)}")
    read: dict[str, Any] = {}
    for key, kind in wanted.items():
        read[key] = about.get(key, kind())
        if not isinstance(read[key], kind):
            raise SynthError(f"{file}: {key}: {'a mapping' if kind is dict else 'a text'} is wanted")
    if stray := sorted(str(key) for key in set(read["defaults"]) - set(read["variables"])):
        raise SynthError(f"{file}: defaults: {stray[0]}: not among the variables")
    return read


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise SynthError(f"{file}: {reason}; a text file in UTF-8 is wanted") from None

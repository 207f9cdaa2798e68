"""The command that runs a program in a sandbox of bubblewrap.

What a program sees: /usr and its interpreter, read-only; an empty tmpfs at /tmp that is as large as its limit; a few
devices; no /proc but where a language needs one, which then shows its own processes only; no network, no environment,
no other user; a process tree of its own that ends with its first process.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from synth.verifiers.code import system_calls
from synth.verifiers.code.settings import Limits

NOBODY: Final = 65534
"""The user a program is inside the sandbox, and outside of it too where we are root: RLIMIT_NPROC never binds root
(kernel/fork.c, copy_process)."""

_BECOME_NOBODY: Final[dict[str, Any]] = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
_SYSTEM_FOLDERS: Final = ("bin", "sbin", "lib", "lib32", "lib64")
_FIRST: Final = ("/bin/sh", "-c", '"$@"; exit $?', "sh")
"""The first process, which ends with the program. bwrap's own would be left to the machine's first process to reap, and
in a container that one often reaps nothing."""

_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random")
_ENVIRONMENT: Final = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONIOENCODING": "utf-8:surrogatepass",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


_ASK: Final = """
import sys
assert sys.version_info >= (3, 10)
print(sys.executable, sys.prefix, sys.base_prefix, sep="\\n")
"""


class SandboxError(Exception):
    """The sandbox's own failure, never the program's; `reason` is the verdict's."""

    def __init__(self, reason: str, told: str = "") -> None:
        super().__init__(f"{reason}: {told}" if told else reason)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class Place:
    """What of the machine one language needs. mounts: folders shown read-only besides /usr. process_files: a /proc.
    address_space: limited (RLIMIT_AS)."""

    mounts: tuple[str, ...] = ()
    process_files: bool = False
    address_space: bool = True


def command(
    inner: Sequence[str], *, limits: Limits, place: Place, files: Sequence[tuple[int, str, int]],
    status: int, gate: int, calls: int | None,
) -> list[str]:  # fmt: skip
    """The argument list. files: (descriptor that is read to its end, path inside, mode). status, gate, calls:
    descriptors of bwrap's report, of what it waits for, and of the seccomp filter."""
    made = [_bwrap(), "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--as-pid-1"]
    made += ["--new-session"]
    made += ["--cap-drop", "ALL", "--uid", str(NOBODY), "--gid", str(NOBODY), "--hostname", "sandbox", "--clearenv"]
    for name, value in _ENVIRONMENT.items():
        made += ["--setenv", name, value]
    made += [*_system(), *(part for path in place.mounts for part in ("--ro-bind", path, path))]
    if place.process_files:
        made += ["--proc", "/proc"]
    for descriptor, path, mode in files:
        made += ["--perms", f"{mode:04o}", "--ro-bind-data", str(descriptor), path]
    made += ["--size", str(limits.files_kibibytes * 1024), "--tmpfs", "/tmp", "--symlink", "/tmp", "/dev/shm"]
    made += ["--remount-ro", "/", "--chdir", "/tmp", "--json-status-fd", str(status), "--block-fd", str(gate)]
    made += [] if calls is None else ["--seccomp", str(calls)]
    return [*made, "--", *_FIRST, *_limited(limits, place), *inner]


def _limited(limits: Limits, place: Place) -> list[str]:
    """Set inside the new user namespace: outside, RLIMIT_NPROC would count all sandboxes together. Raises SandboxError
    for one above a hard limit of this process, which prlimit could not set and would blame on the program."""
    sizes = {
        "nproc": limits.processes,
        "nofile": limits.open_files,
        "fsize": limits.files_kibibytes * 1024,
        # The soft limit ends it with SIGXCPU, which it may ignore; the hard one, a second later, with SIGKILL.
        "cpu": limits.cpu_seconds,
        "core": 0,
        "memlock": 0,
        "msgqueue": 0,
    }
    if place.address_space:
        sizes["as"] = limits.memory_mebibytes << 20
    made = ["/usr/bin/prlimit"]
    for name, size in sizes.items():
        most = size + 1 if name == "cpu" else size
        hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1]
        if 0 <= hard < most:
            raise SandboxError("limit_above_ours", f"{name}: {most} is above this process's own hard limit, {hard}")
        made.append(f"--{name}={size}:{most}")
    return [*made, "--"]


@cache
def _system() -> tuple[str, ...]:
    """/usr, the folders that point into it, and devices."""
    made = ["--ro-bind", "/usr", "/usr"]
    for name in _SYSTEM_FOLDERS:
        path = Path("/") / name
        if path.is_symlink():
            made += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            made += ["--ro-bind", str(path), str(path)]
    for device in _DEVICES:
        made += ["--dev-bind", device, device]
    return tuple(made)


@cache
def _bwrap() -> str:
    found = shutil.which("bwrap", path=f"{os.environ.get('PATH', '')}:/usr/bin:/bin")
    if found is None:
        raise SandboxError("no_sandbox", "bubblewrap's bwrap is not installed")
    if not Path("/usr/bin/prlimit").is_file():
        raise SandboxError("no_sandbox", "/usr/bin/prlimit of util-linux is not installed")
    return found


def identity() -> dict[str, Any]:
    """For subprocess.Popen: who starts bwrap. Root becomes nobody."""
    if os.geteuid() != 0:
        return {}
    _require_nobody()
    return dict(_BECOME_NOBODY)


@cache
def _require_nobody() -> None:
    """Root of a user namespace of its own may not be able to."""
    try:
        subprocess.run(["/bin/true"], check=True, env={}, cwd="/", **_BECOME_NOBODY)
    except (OSError, subprocess.SubprocessError):
        raise SandboxError("no_sandbox", f"root cannot become user {NOBODY} here; be another user") from None


def system_call_filter() -> bytes | None:
    return _filter()


@cache
def _filter() -> bytes | None:
    return system_calls.program()


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """A Python: its path and where it is read from."""

    path: str
    place: Place


@lru_cache(maxsize=8)
def interpreter(path: str) -> Interpreter:
    """The Python that runs programs. Raises SandboxError where there is none, or the sandbox's user cannot read it."""
    candidates = [path] if path else ["/usr/bin/python3", "/usr/local/bin/python3", sys.executable]
    for candidate in candidates:
        try:
            asked = subprocess.run(
                [candidate, "-I", "-c", _ASK], capture_output=True, text=True, timeout=60, check=True, env={}, cwd="/",
                **identity(),
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            continue
        executable, *prefixes = asked.stdout.splitlines()[:3] or [""]
        if len(prefixes) != 2:
            continue
        # Not the whole of a prefix, which may be somebody's home.
        parts = {f"{prefix}/{part}" for prefix in prefixes for part in ("bin", "lib", "lib64", "pyvenv.cfg")}
        mounts = tuple(sorted(part for part in parts if not part.startswith("/usr/") and os.path.exists(part)))
        return Interpreter(path=executable, place=Place(mounts=mounts))
    user = NOBODY if os.geteuid() == 0 else os.geteuid()
    raise SandboxError("no_interpreter", f"{candidates[0]} is no Python of 3.10 or newer that user {user} can run")

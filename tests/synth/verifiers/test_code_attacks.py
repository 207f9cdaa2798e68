"""Programs that try to pass without solving anything, to read what is not theirs, or to leave something behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from synth.verdicts import Check, Outcome, Verdict
from synth.verifiers import Workers, load
from synth.verifiers.code.watching import descendants

CALLS = {
    "entry_point": "f",
    "visible": [{"args": [2], "expected": 4}],
    "hidden": [{"args": [17], "expected": 289}, {"args": [-3], "expected": 9}],
}
ASSERTIONS = {
    "entry_point": "f",
    "visible": [{"code": "assert f(2) == 4"}],
    "hidden": [{"code": "def check(candidate):\n    assert candidate(17) == 289\n    assert candidate(-3) == 9"}],
}
RUNS = {
    "visible": [{"stdin": "2\n", "stdout": "4\n"}],
    "hidden": [{"stdin": "17\n", "stdout": "289\n"}, {"stdin": "-3\n", "stdout": "9\n"}],
}
LIMITS = {
    "wall_seconds": 20.0, "total_seconds": 20.0, "cpu_seconds": 10, "memory_mebibytes": 128, "processes": 12,
    "output_kibibytes": 64, "files_kibibytes": 4096,
}  # fmt: skip

PROGRAMS = r"""
## class_equal_to_all
class E:
    def __eq__(self, other): return True
    __hash__ = None
def f(x): return E()
## int_equal_to_all
class E(int):
    def __eq__(self, other): return True
def f(x): return E(0)
## float_equal_to_all
class E(float):
    def __eq__(self, other): return True
def f(x): return E(1.5)
## str_equal_to_all
class E(str):
    def __eq__(self, other): return True
def f(x): return E('')
## list_equal_to_all
class E(list):
    def __eq__(self, other): return True
def f(x): return E()
## false_inequality
class E:
    def __ne__(self, other): return False
def f(x): return E()
## class_that_encodes_itself
class E(int):
    def __index__(self): return 4
    def __int__(self): return 4
def f(x): return E(0)
## pretended_type
class E:
    __class__ = int
    def __eq__(self, other): return True
def f(x): return E()
## numpy_look_alike
class E:
    def tolist(self): return E()
E.__module__ = 'numpy'
def f(x): return E()
## nan
def f(x): return float('nan')
## infinity
def f(x): return float('inf')
## one_and_a_half
def f(x): return 1.5
## true
def f(x): return True
## none
def f(x): return None
## frame_walk
import sys
def f(x):
    frame = sys._getframe()
    while frame:
        for name in list(frame.f_locals):
            if name in ('told', 'reply', 'expected'): frame.f_locals[name] = {'value': 4}
        frame = frame.f_back
    return 0
## write_the_reply_from_a_frame
import sys
def f(x):
    frame = sys._getframe()
    while 'write' not in frame.f_locals:
        frame = frame.f_back
    told = frame.f_locals['told']
    frame.f_locals['write']('{"value": 4, "number": "%s"}\n' % told['number'])
    return 0
## gc_objects
import gc
for one in gc.get_objects():
    if isinstance(one, dict) and 'value' in one: one['value'] = 4
def f(x): return [one for one in gc.get_objects() if isinstance(one, list) and one == [289]]
## gc_functions
import gc, types
for one in gc.get_objects():
    if isinstance(one, types.FunctionType) and one.__name__ in ('encode', 'answer', 'same_value'):
        one.__code__ = (lambda *a, **k: {'value': True, 'passed': True}).__code__
def f(x): return 0
## exit_at_import
import sys; sys.exit(0)
## os_exit_at_import
import os; os._exit(0)
## exit_in_call
import sys
def f(x): sys.exit(0)
## os_exit_in_call
import os
def f(x): os._exit(0)
## raise_system_exit_in_thread
import threading, os
threading.Thread(target=lambda: os._exit(0)).start()
def f(x): return x
## abort
import os; os.abort()
## segmentation_fault
import ctypes; ctypes.string_at(0)
## kill_all
import os, signal
os.kill(-1, signal.SIGKILL)
def f(x): return 0
## kill_the_first_process
import os, signal
os.kill(1, signal.SIGKILL)
os.kill(os.getppid(), signal.SIGTERM)
def f(x): return 0
## atexit
import atexit
atexit.register(lambda: print(4))
def f(x): return 0
## destructor
class E:
    def __del__(self): print(4)
kept = E()
def f(x): return 0
## patched_builtins
import builtins
builtins.isinstance = lambda *a: True
builtins.len = lambda *a: 1
builtins.open = None
builtins.__import__ = None
def f(x): return 0
## patched_json
import json
json.dumps = lambda *a, **k: '{"value": 4, "passed": true, "outcome": ""}'
def f(x): return 0
## patched_driver
import sys
for name, module in list(sys.modules.items()):
    if 'inside' in name:
        for one in list(vars(module)): setattr(module, one, lambda *a, **k: {'value': True})
def f(x): return 0
## patched_time
import time
time.time = time.monotonic = time.perf_counter = lambda: 0
def f(x): time.sleep(30)
## shadowed_modules
open('json.py', 'w').write('dumps = loads = lambda *a, **k: 4')
open('math.py', 'w').write('isclose = lambda *a: True')
def f(x):
    import math
    return math.isclose
## tampered_builtins_dict
__builtins__.clear() if isinstance(__builtins__, dict) else vars(__builtins__).clear()
def f(x): return 0
## pickle
import os
class E:
    def __reduce__(self): return (os.system, ('exit 0',))
def f(x): return E()
## write_to_descriptors
import os
for fd in range(20):
    for text in (b'4\n', b'{"value": 4}\n', b'{"number": 0, "outcome": ""}\n'):
        try: os.write(fd, text)
        except OSError: pass
def f(x): return 0
## close_descriptors
import os
os.closerange(0, 100)
def f(x): return 0
## read_ahead
import os
def f(x):
    for fd in range(3, 20):
        try: os.set_blocking(fd, False); os.read(fd, 1 << 16)
        except OSError: pass
    return 0
## reply_for_ever
import os
def f(x):
    while True:
        for fd in range(3, 9):
            try: os.write(fd, b'{"value": 289}\n' * 1000)
            except OSError: pass
## infinite_output
import os, sys
while True: os.write(1, b'4\n' * 10000)
## infinite_errors
import os, sys
while True: os.write(2, b'4\n' * 10000)
## infinite_value
def f(x): return list(range(10 ** 7))
## huge_integer
def f(x): return 10 ** 400_000
## huge_integer_printed
import sys
sys.set_int_max_str_digits(0)
print(10 ** 80_000)
def f(x): return 1 << (1 << 20)
## deep_value
def f(x):
    value = []
    for _ in range(100_000): value = [value]
    return value
## value_that_holds_itself
def f(x):
    value = []
    value.append(value)
    return value
## surrogates
print('\ud800')
def f(x): return '\ud800'
## recursion
import sys
sys.setrecursionlimit(10 ** 9)
def f(x): return f(x) + 1
f(1)
## loop
while True: pass
## loop_in_call
def f(x):
    while True: pass
## one_long_operation
def f(x): return 9 ** (9 ** 9)
## regular_expression
import re
def f(x): return re.match('(a+)+b', 'a' * 64)
## sleep
import time; time.sleep(60)
## ignored_signals
import signal
for one in range(1, 65):
    try: signal.signal(one, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: pass
## stdin_read_for_ever
import sys
while True: sys.stdin.read()
## stdin_echoed
import sys
print(sys.stdin.read())
def f(x): return x
## memory
kept = bytearray(10 << 30)
def f(x): return 0
## memory_by_pages
kept = []
while True: kept.append(bytearray(1 << 20))
## memory_of_many_processes
import os, time
for _ in range(8):
    if os.fork() == 0:
        kept = bytearray(b'x') * (60 << 20)
        time.sleep(60)
time.sleep(60)
## memory_without_a_process
import os
held = []
while True:
    held.append(os.memfd_create('x')); os.write(held[-1], bytes(1 << 20))
## fork_bomb
import os
while True:
    try: os.fork()
    except OSError: pass
## fork_three_times_and_sleep
import os, time
for _ in range(3): os.fork()
time.sleep(60)
## threads_left
import threading, time
for _ in range(5): threading.Thread(target=time.sleep, args=(60,)).start()
def f(x): return 0
## daemon
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(60)
    os._exit(0)
def f(x): return 0
## shell_in_background
import os
os.system('sleep 60 & setsid sleep 60 &')
def f(x): return 0
## full_disk
with open('x', 'wb') as file:
    while True: file.write(bytes(1 << 20))
## many_files
for at in range(10 ** 9): open(f'{at}', 'wb').write(bytes(1 << 16))
## syntax_error
def f(x) return
## exceptions_that_raise
class E(Exception):
    def __str__(self): raise E()
    __repr__ = __str__
def f(x): raise E()
## assertion_error
def f(x): raise AssertionError()
## base_exception
class E(BaseException): pass
def f(x): raise E()
## generator
def f(x):
    while True: yield 4
## function_named_check
def check(*a): return True
f = lambda x: 0
## module_getattr
def __getattr__(name): return lambda *a: 0
"""
ATTACKS = dict(part.split("\n", 1) for part in PROGRAMS.split("\n## ")[1:])
ATTACKS["null_byte"] = "def f(x): return 4\0"
ATTACKS["nested_brackets"] = f"f = lambda x: {'(' * 500}{')' * 500}"


@pytest.fixture(scope="module", autouse=True)
def _orphans_come_to_us() -> Iterator[None]:
    """A process whose parent ended becomes this one's child, where the tests can see it."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    set_child_subreaper = 36
    assert prctl(set_child_subreaper, 1, 0, 0, 0) == 0
    yield
    prctl(set_child_subreaper, 0, 0, 0, 0)


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    before, descriptors = alive(), set(os.listdir("/proc/self/fd"))
    yield
    assert alive() <= before
    assert len(os.listdir("/proc/self/fd")) <= len(descriptors)


def alive() -> set[int]:
    """This process's descendants, with those that ended and nobody took note of."""
    return set(descendants(os.getpid()))


def verdict(program: str, gold: Any, **limits: Any) -> Verdict:
    return load("code").verify(gold, program, {"part": "whole", "limits": {**LIMITS, **limits}})


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("gold", [CALLS, ASSERTIONS, RUNS], ids=["calls", "assertions", "runs"])
def test_no_attack_passes_or_leaves_a_process(name: str, gold: Any) -> None:
    began = time.monotonic()
    found = verdict(ATTACKS[name], gold, wall_seconds=0.6, total_seconds=0.6)
    assert found.outcome == Outcome.WRONG or (found.outcome, found.reason) == (Outcome.ERROR, "busy"), found
    assert time.monotonic() - began < 20


PRELUDE = """
import os, socket, subprocess
found = []
def tried(what, do):
    try:
        got = do()
    except BaseException:
        return
    if got:
        found.append(what)
"""

LEAKS = {
    "files": """
for path in ("/etc/passwd", "/etc/shadow", "/etc/hostname", "/root", "/home", "/var", "/mnt", "/proc/self/environ",
             "/proc/1/cmdline", "/proc/mounts", "/sys", "/run", "/boot", "/srv", "/opt", "/dev/mem", "/dev/kmsg"):
    tried(path, lambda: os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1))
known = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "dev", "tmp", "program.py"}
tried("root", lambda: set(os.listdir("/")) - known)
def walked():
    for folder, folders, files in os.walk("/"):
        folders[:] = [one for one in folders if os.path.join(folder, one) not in ("/usr", "/dev")]
        yield from files
tried("any file", lambda: set(walked()) - {"program.py"})
""",
    "environment": """
keep = {"PATH", "HOME", "TMPDIR", "LANG", "PWD", "LC_CTYPE", "SHLVL", "_", "OLDPWD",
        "PYTHONHASHSEED", "PYTHONIOENCODING", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}
tried("environ", lambda: set(os.environ) - keep)
tried("processes", lambda: subprocess.run(["ps", "-e"], capture_output=True).stdout.count(b"\\n") > 1)
tried("arguments", lambda: any("289" in one for one in __import__("sys").orig_argv))
tried("user", lambda: os.getuid() != 65534 or os.getgid() != 65534)
tried("groups", lambda: set(os.getgroups()) - {65534})
tried("host", lambda: os.uname().nodename != "sandbox")
""",
    "network": """
def connect(family, address):
    with socket.socket(family) as one:
        one.settimeout(1)
        one.connect(address)
    return True
for address in (("127.0.0.1", 22), ("1.1.1.1", 53), ("169.254.169.254", 80)):
    tried(str(address), lambda: connect(socket.AF_INET, address))
tried("ipv6", lambda: connect(socket.AF_INET6, ("::1", 22)))
tried("listen", lambda: socket.create_server(("127.0.0.1", 0)))
tried("names", lambda: socket.getaddrinfo("example.org", 80))
tried("raw", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
tried("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
tried("vsock", lambda: socket.socket(socket.AF_VSOCK))
for path in ("/run/docker.sock", "/run/dbus/system_bus_socket", "\\0/tmp" "/.X11-unix/X0", "/dev/log"):
    tried(path, lambda: connect(socket.AF_UNIX, path))
""",
    "writing": """
def write(path):
    with open(path, "w") as file:
        file.write("x")
    return True
for path in ("/x", "/usr/x", "/usr/bin/x", "/usr/lib/x", "/dev/x", "/bin/x", "/program.py", "/usr/lib/python3/x"):
    tried(path, lambda: write(path))
def through_a_link():
    os.symlink("/usr", "link")
    return write("link/x")
tried("link", through_a_link)
def up():
    os.chdir("/tmp")
    return write("../../../../x") or write("../usr/x")
tried("up", up)
tried("remount", lambda: subprocess.run(["mount", "-o", "remount,rw", "/"], capture_output=True).returncode == 0)
tried("device", lambda: os.mknod("disk", 0o60600, os.makedev(254, 0)) is None and open("disk", "rb").read(1))
tried("chroot", lambda: os.chroot("/tmp") is None)
tried("nice", lambda: os.nice(-5) < 0)
tried("more processes", lambda: __import__("resource").setrlimit(6, (1000, 1000)) is None)
tried("setuid", lambda: os.setuid(0) is None)
""",
    "system_calls": """
import contextlib
import ctypes
call = ctypes.CDLL(None, use_errno=True).syscall
here = os.uname().machine == "x86_64"
for name, number in {"ptrace": 101 if here else 117, "unshare": 272 if here else 97, "mount": 165 if here else 40,
                     "keyctl": 250 if here else 219, "bpf": 321 if here else 280, "memfd": 319 if here else 279,
                     "io_uring": 425, "perf": 298 if here else 241, "shmget": 29 if here else 194}.items():
    tried(name, lambda: call(number, 0, 0, 0, 0, 0, 0) >= 0)
tried("attach", lambda: call(101 if here else 117, 16, 1, 0, 0) >= 0)
tried("namespace", lambda: subprocess.run(["unshare", "--user", "true"], capture_output=True).returncode == 0)
tried("clone3", lambda: call(435, 0, 0) >= 0)
tried("x32", lambda: here and os.fork() == 0 and call(0x40000000 + 39) > 0 and open("x32", "w"))
os.path.exists("x32") and found.append("x32")
tried("memory of another", lambda: open("/proc/1/mem", "rb").read(1))
tried("send to all", lambda: os.kill(-1, 0) is None and len(found) < 0)
""",
}


@pytest.mark.parametrize("name", LEAKS)
@pytest.mark.parametrize("style", ["calls", "runs"])
def test_nothing_of_the_machine_can_be_read_written_or_reached(name: str, style: str) -> None:
    if style == "calls":
        program, gold = (
            f"{PRELUDE}{LEAKS[name]}\ndef f(): return found",
            {"entry_point": "f", "hidden": [{"expected": []}]},
        )
    else:
        program, gold = f"{PRELUDE}{LEAKS[name]}\nprint(found)", {"hidden": [{"stdout": "[]"}]}
    assert verdict(program, gold) == Verdict(outcome=Outcome.RIGHT, reason="passed")


def test_one_program_leaves_nothing_for_the_next() -> None:
    leave = "open('left', 'w').write('289')\nopen('/dev/shm/left', 'w').write('289')\ndef f(x): return x * x"
    find = "import os\nprint(sorted(os.listdir('/tmp')) + sorted(os.listdir('/dev/shm')))"
    assert verdict(leave, CALLS).outcome == Outcome.RIGHT
    assert verdict(find, {"hidden": [{"stdout": "[]"}]}).outcome == Outcome.RIGHT


def test_expected_values_and_later_tests_are_nowhere_in_the_programs_memory() -> None:
    program = """
import ctypes, gc, sys
seen = []
def texts(value, depth=0):
    if isinstance(value, (str, bytes)): yield value if isinstance(value, str) else value.decode("latin-1")
    elif isinstance(value, dict) and depth < 4:
        for key, one in list(value.items()): yield from texts(key, depth + 1); yield from texts(one, depth + 1)
    elif isinstance(value, (list, tuple)) and depth < 4:
        for one in list(value): yield from texts(one, depth + 1)
def f(x):
    everything = list(texts(gc.get_objects(), 1))
    frame = sys._getframe()
    while frame:
        everything += texts(dict(frame.f_locals)); frame = frame.f_back
    return [one for one in everything if "secret" + "-expected" in one or "later" + "-argument" in one]
"""
    gold = {
        "entry_point": "f",
        "hidden": [
            {"args": [1], "expected": []},
            {"args": [2], "expected": []},
            {"args": ["later-argument"], "expected": "secret-expected"},
        ],
    }
    # The first two calls find nothing; the third finds its own argument, and not what it should return.
    assert verdict(program, gold).reason == "wrong_value"
    assert verdict(program, {"entry_point": "f", "hidden": gold["hidden"][:2]}).outcome == Outcome.RIGHT


def test_tests_do_not_judge_with_the_programs_own_functions() -> None:
    program = """
class math:
    isclose = staticmethod(lambda *a, **k: True)
isclose = lambda *a, **k: True
def sorted(*a): return [289]
def f(x): return 0
"""
    for code in ("import math\nassert math.isclose(f(17), 289)", "assert math.isclose(f(17), 289)",
                 "from math import isclose\nassert isclose(f(17), 289)"):  # fmt: skip
        assert verdict(program, {"entry_point": "f", "hidden": [{"code": code}]}).reason == "failed_assertion"
        assert verdict(program, {"hidden": [{"code": code}]}).reason == "failed_assertion"
    named = {"entry_point": "f", "hidden": [{"code": "assert isclose(f(17), 289)"}]}
    assert verdict(program, named) == Verdict(outcome=Outcome.ERROR, reason="test_does_not_run")


def test_a_killed_verifier_takes_its_sandbox_with_it() -> None:
    options = {"limits": {"wall_seconds": 60.0, "total_seconds": 60.0}}
    sleeper = Check(kind="code", gold=CALLS, answer="import time, os\nos.fork()\ntime.sleep(60)", options=options)
    before = alive()
    with Workers(processes=1, limit_seconds=2.0, kinds=("code",)) as workers, ThreadPoolExecutor(1) as thread:
        verdict = thread.submit(workers.check_all, [sleeper])
        most = 0
        while not verdict.done():
            most = max(most, len(alive() - before))
            time.sleep(0.05)
        assert verdict.result()[0].reason == "hang"
        assert most >= 4  # the worker, bwrap, the first process and the two that sleep
        right = Check(kind="code", gold=CALLS, answer="def f(x): return x * x")
        assert workers.check_all([right])[0].outcome == Outcome.RIGHT
    deadline = time.monotonic() + 10
    while (left := alive() - before) and time.monotonic() < deadline:
        for one in left:  # orphans of the killed worker come to us
            with contextlib.suppress(ChildProcessError):
                os.waitpid(one, os.WNOHANG)
        time.sleep(0.05)
    assert not left

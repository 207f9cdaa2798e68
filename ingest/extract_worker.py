"""The child process in which pages are parsed: one page at a time, each under its own CPU-time limit.

    python -m ingest.extract_worker     frames on stdin, answers on stdout; ends with its stdin or its parent

The CPU limit is a timer whose signal keeps its default action, so it ends the process even inside C code, and it
counts CPU time, so that load never changes an answer.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
from collections.abc import Callable

from ingest.worker_frames import READY, Answer, Inbox, Job, Orders, next_frame, send

PARENT_CHECK_S = 5.0
RESET_EVERY = 512  # pages between emptying the libraries' caches


def main() -> None:
    """Answer frames until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle; stdin closes with it
    inlet, outlet = os.dup(0), os.dup(1)
    # Whatever a library prints must not get between the frames.
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    _be_first_to_go()
    parent = os.getppid()
    inbox = Inbox()
    orders = next_frame(inbox, inlet, parent, PARENT_CHECK_S)
    if orders is None:
        return
    answer = _prepare(orders)
    send(outlet, READY)
    os.dup2(null, 2)  # up to here stderr tells why a start fails; from here on it could hold a page's text
    done = 0
    while (job := next_frame(inbox, inlet, parent, PARENT_CHECK_S)) is not None:
        reply = answer(job)
        send(outlet, reply)
        done += 1
        if reply[0] == "error" and reply[1][0] == "resource":
            return  # memory ran out: what is left of this process is not to be trusted
        if done % RESET_EVERY == 0:
            _reset()


def _prepare(orders: Orders) -> Callable[[Job], Answer]:
    from ingest.engines import prepare
    from ingest.page import extract_page

    prepare()
    # What is loaded now stays for good: the collector need not walk it again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    _limit_memory(orders.memory_limit_bytes)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)

    def answer(job: Job) -> Answer:
        signal.setitimer(signal.ITIMER_PROF, orders.cpu_limit_s)
        try:
            found = extract_page(job.page, job.url, orders.engine, orders.favor, job.captured)  # type: ignore[arg-type]
            return ("none", None) if found is None else ("text", found)
        except MemoryError:
            return "error", ("resource", "memory limit reached")
        except RecursionError:
            return "error", ("too_deep", "the extractor recursed too deeply")
        except Exception as error:  # the record boundary: it becomes a quarantined record
            return "error", (type(error).__name__, "the extractor failed")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    return answer


def _be_first_to_go() -> None:
    """Where memory runs out, the kernel shall take this process before its parent."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass


def _limit_memory(limit: int) -> None:
    """Address space: what the process has now, and `limit` on top. No core files of hostile pages."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    try:
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (now + limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    except (OSError, ValueError):
        pass  # no /proc, or a lower hard limit already


def _reset() -> None:
    from ingest.engines import reset

    reset()


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        os._exit(0)

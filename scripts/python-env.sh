#!/usr/bin/env bash
# Makes the environment that the tests of the Python hooks run in, once, outside the repository; about 6 GB, because
# torch from PyPI for x86-64 is linked against CUDA's libraries and does not load without them.
#
#   scripts/python-env.sh            makes it if need be, and prints its path
#   scripts/python-env.sh --path     only prints its path; fails if it is not complete
#
# GNNTOP_PYTHON_ENV  where it is (default ~/.cache/gnntop/python-env)
# PYTHON             the Python to make it with (default python3)
# TORCH              another release of torch, such as 2.3.1 (with its own GNNTOP_PYTHON_ENV)
set -euo pipefail
cd "$(dirname "$0")/.."
home=${GNNTOP_PYTHON_ENV:-$HOME/.cache/gnntop/python-env}
list=python/tests/requirements.txt
# An environment is complete if it was made from the current list.
wanted=$(cat "$list" - <<<"torch ${TORCH:-newest}" | cksum)

is_complete() { [ "$(cat "$home/complete" 2>/dev/null)" = "$wanted" ]; }

if [ "${1:-}" = --path ]; then
    is_complete && echo "$home" && exit
    echo "no complete environment at $home; to make one: scripts/python-env.sh" >&2
    exit 1
fi
if ! is_complete; then
    rm -f "$home/complete"
    mkdir -p "$(dirname "$home")"
    [ -x "$home/bin/python" ] || "${PYTHON:-python3}" -m venv "$home"
    "$home/bin/pip" install --quiet --no-cache-dir ${TORCH:+"torch==$TORCH"} --requirement "$list" >&2
    # DGL's releases on PyPI are older than most of torch's: without its dependencies, and only if available.
    "$home/bin/pip" install --quiet --no-cache-dir --no-deps dgl==1.1.3 >&2 || echo "DGL: no wheel for this Python" >&2
    echo "$wanted" >"$home/complete"
fi
echo "$home"

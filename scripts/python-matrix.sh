#!/usr/bin/env bash
# Runs training loops alone and under `gnntop run` with other Pythons and other releases of torch, and prints a line for each.
#
#   scripts/python-matrix.sh PYTHON[=TORCH]...
#   scripts/python-matrix.sh python3.13 python3.11=2.3.1 ~/envs/nightly/bin/python
#
# A Python that has torch and pytest is used as it is. For any other an environment is made, with this release of torch or the
# newest, and removed afterwards: about 6 GB each while it is used. Needs `cargo build -p gnntop -p gnntop-python --no-default-features`.
set -euo pipefail
cd "$(dirname "$0")/../python"
[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "../scripts/$(basename "$0")" && exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# environment PYTHON TORCH: prints a Python that has torch and pytest.
environment() {
    if [ -z "$2" ] && "$1" -c "import torch, pytest" 2>/dev/null; then
        echo "$1"
        return
    fi
    rm -rf "$work/env"
    "$1" -m venv "$work/env"
    "$work/env/bin/pip" install --quiet --no-cache-dir "torch${2:+==$2}" numpy pytest >&2
    echo "$work/env/bin/python"
}

failed=0
for pair in "$@"; do
    release=${pair#"${pair%%=*}"}
    python=$(environment "${pair%%=*}" "${release#=}")
    versions=$("$python" -c "import platform, torch; print('Python', platform.python_version(), 'torch', torch.__version__)")
    if "$python" -m pytest -q -p no:cacheprovider tests/test_loops.py -k "plain or micro_batches or gan or lbfgs" >"$work/log" 2>&1; then
        echo "$versions: $(tail -1 "$work/log")"
    else
        failed=1
        cat "$work/log"
        echo "$versions: FAILED"
    fi
done
exit $failed

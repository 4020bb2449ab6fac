#!/usr/bin/env bash
# Reading on macOS and Windows (docs/platforms.md).
#
#   scripts/other-systems.sh        on Linux: the program compiles for those targets that rustup has; says which it lacks
#   scripts/other-systems.sh FOLDER on those systems: builds the program, and compares what it says of the recordings with what it said
#                                   on Linux (scripts/reading.sh) into FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
    for target in x86_64-pc-windows-gnu aarch64-apple-darwin; do
        if rustup target list --installed 2>/dev/null | grep --quiet --line-regexp "$target"; then
            cargo clippy --target "$target" -p gnntop --no-default-features --bins --lib -- -D warnings
        else
            echo "NOT CHECKED: $target. To check it: rustup target add $target"
            # GitHub's machines have what it takes (scripts/ci-tools.sh): there, nothing is left out in silence.
            [ -z "${GITHUB_ACTIONS:-}" ]
        fi
    done
    exit
fi
cargo build --locked -p gnntop --no-default-features --bin gnntop
scripts/reading.sh target/reading target/debug/gnntop
scripts/reading.sh --compare "$1" target/reading
# What needs Linux says so.
if target/debug/gnntop run -- python train.py 2>target/said; then echo "run works here?" >&2 && exit 1; fi
grep 'needs Linux' target/said

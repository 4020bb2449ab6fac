#!/usr/bin/env bash
# What must build on systems other than Linux, by the system this runs on: the libraries everywhere, the viewer on Unix.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo check -p gnntop-wire --all-targets
cargo check -p gnntop-analysis
case $(uname -s) in
    Darwin) cargo check -p gnntop --no-default-features --bins --lib ;;
    *) echo "the viewer is not built on $(uname -s)" ;;
esac

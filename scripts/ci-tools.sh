#!/usr/bin/env bash
# Installs what a fresh CI machine needs for ./check.sh beyond a C compiler: the oldest Rust that is supported, so that the checks
# run with it, the tools that ./check.sh would skip without, and the targets that it checks.
#
#   scripts/ci-tools.sh        for all parts but `deny`
#   scripts/ci-tools.sh deny   for that too: its tool takes minutes to build
set -euo pipefail
cd "$(dirname "$0")/.."
rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
rustup toolchain install "$rust" --profile minimal --component clippy --component rustfmt
rustup default "$rust"
rustup target add x86_64-pc-windows-gnu aarch64-apple-darwin
# Ubuntu's pip refuses otherwise, for the user too.
PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --quiet --user typos
if [ "${1:-}" != deny ]; then exit; fi
command -v cargo-deny >/dev/null || cargo install --locked cargo-deny

#!/usr/bin/env bash
# Installs what scripts/release.sh needs on a fresh Ubuntu, beyond scripts/ci-tools.sh: targets for a static program and for
# aarch64, and the tools that make wheels for old systems and the SBOM.
set -euo pipefail
sudo apt-get install --quiet --yes musl-tools
rustup target add x86_64-unknown-linux-musl aarch64-unknown-linux-gnu
PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --quiet --user auditwheel cargo-zigbuild ziglang
cargo install --locked cargo-cyclonedx

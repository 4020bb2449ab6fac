#!/usr/bin/env bash
# The crates in the order in which they are published: each needs those before it.
#
#   scripts/crates.sh             packs each, and lists how many files and bytes each has; needs no network
#   scripts/crates.sh --publish   publishes each that crates.io does not have in this version; needs `cargo login`
#
# crates.io takes five new names at once, then one in ten minutes: after its refusal, run it again.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly CRATES=(wire history sessions sensors probe analysis python workloads/data workloads/nn workloads .)
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}

for folder in "${CRATES[@]}"; do
    name=$(sed -n '/^\[package\]/,/^\[/s/^name = "\(.*\)"/\1/p' "$folder/Cargo.toml")
    if [ "${1:-}" != --publish ]; then
        # Without a lock file, which would take our own crates from crates.io.
        cargo package --no-verify --allow-dirty --offline --exclude-lockfile --manifest-path "$folder/Cargo.toml" -p "$name" 2>&1 |
            sed -n "s/^ *Packaged/$name:/p"
    elif cargo info --registry crates-io "$name@$version" >/dev/null 2>&1; then
        echo "$name $version is published"
    else
        cargo publish --locked --manifest-path "$folder/Cargo.toml" -p "$name"
    fi
done

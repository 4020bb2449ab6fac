#!/usr/bin/env bash
# Sets the version of everything: Cargo.toml, Cargo.lock, the Python package, and the heading of the changelog, with the date.
#
#   scripts/version.sh 0.2.0
set -euo pipefail
cd "$(dirname "$0")/.."
new=${1:?give a version, such as 0.2.0}
[[ $new =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || { echo "\"$new\" is not a version: give three numbers, such as 0.2.0" >&2; exit 2; }
old=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
dotted=${old//./\\.}

sed -i "/^\[workspace.package\]/,/^\[/s/^version = \"$dotted\"/version = \"$new\"/; /^gnntop-.*path = /s/version = \"$dotted\"/version = \"$new\"/" Cargo.toml workloads/Cargo.toml
sed -i "s/^__version__ = \"$dotted\"/__version__ = \"$new\"/" python/gnntop/__init__.py
cargo update --workspace --offline --quiet
cargo update --workspace --offline --quiet --manifest-path workloads/Cargo.toml
# The unreleased section becomes this version.
sed -i "s/^## \[[^]]*\] - unreleased$/## [$new] - $(date --utc +%F)/; s/^## \[Unreleased\]$/## [$new] - $(date --utc +%F)/" CHANGELOG.md

left=$(git grep --line-number --fixed-strings "version = \"$old\"" -- Cargo.toml '*/Cargo.toml' python/gnntop | grep gnntop || true)
if [ "$old" != "$new" ] && [ -n "$left" ]; then echo "$old is still in: $left" >&2; exit 1; fi
echo "$old -> $new. Look at it with git diff, then: git commit -am \"release: $new\" && git tag v$new"

#!/usr/bin/env bash
# Builds everything for a tagged release, tests it, and makes a draft release of it; a person reviews the draft and
# publishes it. Nothing is uploaded to crates.io or PyPI. scripts/release-tools.sh installs what it needs.
#
#   scripts/release.sh v0.2.0            as CI runs it; needs GitHub's `gh` with a token
#   scripts/release.sh v0.2.0 --no-draft only builds and tries
set -euo pipefail
cd "$(dirname "$0")/.."
tag=${1:?give the tag, such as v0.2.0}
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
[ "$tag" = "v$version" ] || { echo "the tag is $tag and the version $version: run scripts/version.sh ${tag#v}" >&2; exit 1; }
grep --quiet "^## \[$version\] - [0-9]" CHANGELOG.md || { echo "CHANGELOG.md has no dated $version" >&2; exit 1; }

./check.sh package
workloads/check.sh package
out=target/packages
static=target/packages-static
TARGET=x86_64-unknown-linux-musl scripts/package.sh --test "$static"
scripts/package.sh --test "$out"
mv "$static"/*.tar.gz "$out"
# With the source, from which pip builds, and the recipes in packaging/ too.
scripts/wheel.sh --test --all "$out"
TARGET=aarch64-unknown-linux-gnu scripts/wheel.sh --all "$out"
rm "$out/SHA256SUMS"
(cd "$out" && sha256sum -- * >SHA256SUMS)
packaging/fill.sh "${GITHUB_SERVER_URL:-https://github.com}/${GITHUB_REPOSITORY:-OWNER/gnntop}" "$out"
[ "${2:-}" = --no-draft ] && exit
# The changelog's section for this version.
notes=$(sed -n "/^## \[$version\]/,/^## \[/p" CHANGELOG.md | grep -v '^## \[')
gh release create "$tag" --draft --title "gnntop $version" --notes "$notes" "$out"/*.* "$out/SHA256SUMS" "$out"/packaging/*

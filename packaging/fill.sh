#!/usr/bin/env bash
# Fills in the recipes of a release: its version, its address, and the checksum of its source.
#
#   packaging/fill.sh https://github.com/OWNER/gnntop FOLDER     FOLDER has the release's files with SHA256SUMS
#
# Writes FOLDER/packaging. docs/releasing.md says where each recipe goes. package.nix needs nothing filled in.
set -euo pipefail
address=${1:?give the address of the repository, such as https://github.com/OWNER/gnntop}
folder=${2:?give the folder of the release}
here=$(dirname "$0")
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$here/../Cargo.toml")
sha256=$(awk -v name="gnntop-$version.tar.gz" '$2 == name { print $1 }' "$folder/SHA256SUMS")
[ -n "$sha256" ] || { echo "$folder/SHA256SUMS has no gnntop-$version.tar.gz" >&2; exit 1; }
owner=$(basename "$(dirname "$address")")
mkdir -p "$folder/packaging"
for recipe in recipe.yaml gnntop.rb PKGBUILD; do
    sed "s|@ADDRESS@|$address|g; s|@OWNER@|$owner|g; s|@VERSION@|$version|g; s|@SHA256@|$sha256|g; /@\.\.\.@/d" \
        "$here/$recipe" >"$folder/packaging/$recipe"
done
ls "$folder/packaging"

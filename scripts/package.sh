#!/usr/bin/env bash
# Builds the parts of a release into one folder: a tarball with program, completions and manual pages, for each of the
# full program and the viewer alone; a Debian package and an SBOM if their tools are installed; and checksums of all.
#
#   scripts/package.sh [FOLDER]        default target/packages
#   scripts/package.sh --test [FOLDER] and unpacks each tarball and the Debian package, and runs its program
#
# GNNTOP_PROGRAM  a finished full program; then neither is built and there is no tarball of the viewer
# TARGET          a target that rustup has, such as x86_64-unknown-linux-musl for a static program (default: this machine's)
set -euo pipefail
cd "$(dirname "$0")/.."
GNNTOP_COMMIT=$(git rev-parse --short HEAD 2>/dev/null || true) && export GNNTOP_COMMIT
test=no
if [ "${1:-}" = --test ]; then test=yes && shift; fi
out=${1:-target/packages}
target=${TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
rm -rf "$out"
mkdir -p "$out"

# pack NAME PROGRAM: the tarball of a program. The same program gives the same bytes.
pack() {
    local folder=$out/$1
    mkdir -p "$folder/completions" "$folder/man"
    install -m 755 "$2" "$folder/gnntop"
    strip "$folder/gnntop"
    cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$folder"
    for shell in bash zsh fish; do "$2" completions "$shell" >"$folder/completions/gnntop.$shell"; done
    "$2" man "$folder/man"
    tar --create --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --directory="$out" "$1" |
        gzip --no-name --best >"$folder.tar.gz"
    local bytes
    bytes=$(stat --format=%s "$folder/gnntop")
    echo "$folder.tar.gz: $(stat --format=%s "$folder.tar.gz") bytes, the program $bytes bytes"
    # A promise to those who install only the viewer.
    if [[ $1 == gnntop-viewer-* && $bytes -ge 6000000 ]]; then echo "the viewer has 6 MB or more" >&2 && exit 1; fi
    rm -r "$folder"
}
# run_packed TARBALL: the program runs from where it was unpacked, and all of the tarball is there.
run_packed() {
    local folder
    folder=$(mktemp -d)
    tar --extract --gzip --file="$1" --directory="$folder"
    "$folder"/*/gnntop --version
    "$folder"/*/gnntop doctor >/dev/null
    test -s "$folder"/*/completions/gnntop.bash && test -s "$folder"/*/man/gnntop.1 && test -s "$folder"/*/LICENSE-MIT
    rm -r "$folder"
}
# run_debian PACKAGE: the program runs from where the package puts it, and its manual pages and completions are there.
run_debian() {
    local folder
    folder=$(mktemp -d)
    dpkg-deb --extract "$1" "$folder"
    "$folder"/usr/bin/gnntop --version
    test -s "$folder"/usr/share/man/man1/gnntop.1* && test -s "$folder"/usr/share/bash-completion/completions/gnntop
    rm -r "$folder"
}
build() { cargo build --release --locked --target "$target" "$@"; }

# A static program carries a native part that is linked with glibc, as Python is: by default this machine's.
if [[ $target == *-musl ]] && command -v cargo-zigbuild >/dev/null; then
    cargo zigbuild --release -p gnntop-python --target "${target/musl/gnu}.2.17" --target-dir target/native
    export GNNTOP_NATIVE_LIBRARY=$PWD/target/native/${target/musl/gnu}/release/libgnntop_python.so
fi
if [ -n "${GNNTOP_PROGRAM:-}" ]; then
    pack "gnntop-$version-$target" "$GNNTOP_PROGRAM"
else
    build -p gnntop --no-default-features
    pack "gnntop-viewer-$version-$target" "target/$target/release/gnntop"
    build -p gnntop
    pack "gnntop-$version-$target" "target/$target/release/gnntop"
fi
if [ "$test" = yes ]; then for tarball in "$out"/*.tar.gz; do run_packed "$tarball"; done; fi

if [ -n "${GNNTOP_PROGRAM:-}" ]; then
    echo "SKIPPED: no Debian package of a finished program"
elif [[ $target == *-musl ]]; then
    echo "no Debian package of a static program"
elif command -v cargo-deb >/dev/null; then
    program=target/$target/release/gnntop
    mkdir -p target/deb/man
    for shell in bash zsh fish; do "$program" completions "$shell" >"target/deb/gnntop.$shell"; done
    "$program" man target/deb/man
    cargo deb --no-build --target "$target" --output "$out"
    if [ "$test" = yes ]; then run_debian "$out"/*.deb; fi
else
    echo "SKIPPED: no Debian package. To install its tool: cargo install --locked cargo-deb"
fi
if command -v cargo-cyclonedx >/dev/null; then
    cargo cyclonedx --format json --override-filename "gnntop-$version.cdx"
    mv "gnntop-$version.cdx.json" "$out"
    find . -name "gnntop-$version.cdx.json" -not -path "./target/*" -delete
else
    echo "SKIPPED: no SBOM. To install its tool: cargo install --locked cargo-cyclonedx"
fi
(cd "$out" && sha256sum -- * >SHA256SUMS)
echo "$out:" && ls "$out"

#!/usr/bin/env bash
# Builds the parts of a release into one folder: a tarball with program, completions and manual pages, for each of the
# full program and the viewer alone; a Debian package and an SBOM if their tools are installed; and checksums of all.
#
#   scripts/package.sh [FOLDER]        default target/packages
#   scripts/package.sh --test [FOLDER] and unpacks each tarball, installs and removes the Debian package, and runs its program
#
# GNNTOP_PROGRAM  a finished program; then neither is built and there is no tarball of the viewer
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
    # So that it does not grow unseen. The aim, which it misses, is 6 MB (docs/releasing.md).
    if [[ $1 == gnntop-viewer-* && $bytes -ge 13000000 ]]; then echo "the viewer has 13 MB or more" >&2 && exit 1; fi
    rm -r "$folder"
}
# run_packed TARBALL: the program runs from where it was unpacked, and all of the tarball is there.
run_packed() {
    local folder
    folder=$(mktemp -d)
    tar --extract --gzip --file="$1" --directory="$folder"
    "$folder"/*/gnntop --version
    "$folder"/*/gnntop doctor >/dev/null
    "$folder"/*/gnntop report recordings/demo/gc.gnntop | grep 'garbage collection'
    { timeout 9 "$folder"/*/gnntop demo gc --plain </dev/null || true; } | grep --max-count=1 'steps/s'
    test -s "$folder"/*/completions/gnntop.bash && test -s "$folder"/*/man/gnntop.1 && test -s "$folder"/*/LICENSE-MIT
    rm -r "$folder"
}
# debian PROGRAM: the Debian package, by DEBFULLNAME and DEBEMAIL. It depends on the C library that the program was linked with.
debian() {
    local root=$out/deb glibc maintainer="${DEBFULLNAME:-The gnntop authors} <${DEBEMAIL:-nobody@example.invalid}>"
    glibc=$(readelf --dyn-syms --wide "$1" | grep -o 'GLIBC_[0-9.]*' | sort --version-sort --unique | tail -1)
    install -D --mode=755 "$1" "$root/usr/bin/gnntop"
    strip "$root/usr/bin/gnntop"
    mkdir -p "$root"/usr/share/{doc/gnntop,man/man1,bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
    cat - LICENSE-MIT >"$root/usr/share/doc/gnntop/copyright" <<END
gnntop is the work of its authors. You may use it under either of two licences, as you choose: Apache's, version 2.0, which is
/usr/share/common-licenses/Apache-2.0, or the following.

END
    gzip --no-name --best <CHANGELOG.md >"$root/usr/share/doc/gnntop/CHANGELOG.md.gz"
    gzip --no-name --best >"$root/usr/share/doc/gnntop/changelog.gz" <<END
gnntop ($version) unstable; urgency=medium

  * What is new is in CHANGELOG.md.gz.

 -- $maintainer  $(git log -1 --format=%aD 2>/dev/null || date --rfc-email)
END
    "$1" man "$root/usr/share/man/man1"
    gzip --no-name --best "$root"/usr/share/man/man1/*
    "$1" completions bash >"$root/usr/share/bash-completion/completions/gnntop"
    "$1" completions zsh >"$root/usr/share/zsh/vendor-completions/_gnntop"
    "$1" completions fish >"$root/usr/share/fish/vendor_completions.d/gnntop.fish"
    mkdir "$root/DEBIAN"
    cat >"$root/DEBIAN/control" <<END
Package: gnntop
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: $maintainer
Section: utils
Priority: optional
Depends: libc6 (>= ${glibc#GLIBC_}), libgcc-s1
Installed-Size: $(du --summarize --block-size=1024 "$root/usr" | cut --fields=1)
Description: live profiler in the terminal for training runs
 Shows live where each step of a training spends its time, memory and energy,
 and why a step was slow: for PyTorch, without a change to the program, and for
 graph neural networks first. Sessions are recorded, replayed and compared.
END
    dpkg-deb --root-owner-group --build "$root" "$out/gnntop_${version}_$(dpkg --print-architecture).deb"
    rm -r "$root"
}
# run_debian PACKAGE: dpkg installs it into an empty system, where it finds the libraries that it depends on; the program runs, and
# nothing is left of it afterwards. Without root's rights it is only unpacked.
run_debian() {
    local folder
    folder=$(mktemp -d)
    if [ "$(id --user)" = 0 ]; then
        mkdir -p "$folder/var/lib/dpkg/"{info,updates}
        dpkg-query --status libc6 libgcc-s1 >"$folder/var/lib/dpkg/status"
        dpkg --root="$folder" --install "$1" 2>"$folder/notes" || { cat "$folder/notes" && return 1; }
    else
        dpkg-deb --extract "$1" "$folder"
    fi
    "$folder"/usr/bin/gnntop --version
    test -s "$folder"/usr/share/man/man1/gnntop.1.gz && test -s "$folder"/usr/share/bash-completion/completions/gnntop
    if [ "$(id --user)" = 0 ]; then
        dpkg --root="$folder" --purge gnntop 2>"$folder/notes" || { cat "$folder/notes" && return 1; }
        test ! -e "$folder/usr/bin/gnntop"
    fi
    rm -r "$folder"
}
build() { cargo build --locked --target "$target" -p gnntop "$@"; }

# A static program carries a native part that is linked with glibc, as Python is: by default this machine's.
if [[ $target == *-musl ]] && command -v cargo-zigbuild >/dev/null; then
    cargo zigbuild --release -p gnntop-python --target "${target/musl/gnu}.2.17" --target-dir target/native
    export GNNTOP_NATIVE_LIBRARY=$PWD/target/native/${target/musl/gnu}/release/libgnntop_python.so
fi
if [ -n "${GNNTOP_PROGRAM:-}" ]; then
    pack "gnntop-$version-$target" "$GNNTOP_PROGRAM"
else
    build --profile small --no-default-features
    pack "gnntop-viewer-$version-$target" "target/$target/small/gnntop"
    build --release
    pack "gnntop-$version-$target" "target/$target/release/gnntop"
fi
if [ "$test" = yes ]; then for tarball in "$out"/*.tar.gz; do run_packed "$tarball"; done; fi

if [[ $target == *-musl ]]; then
    echo "no Debian package of a static program"
elif command -v dpkg-deb >/dev/null; then
    debian "${GNNTOP_PROGRAM:-target/$target/release/gnntop}"
    if [ "$test" = yes ]; then run_debian "$out"/*.deb; fi
else
    echo "SKIPPED: no Debian package: there is no dpkg-deb"
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

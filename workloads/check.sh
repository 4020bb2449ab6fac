#!/usr/bin/env bash
# Everything that must hold of the built-in trainings, and of the program that has them; `check.sh` of the repository has the rest.
#
#   workloads/check.sh            all of it
#   workloads/check.sh lint docs  only these: fmt lint members tests program torture docs package deny
#   workloads/check.sh mpi        not part of all: ranks as processes, which needs Open MPI and libclang (docs/cluster.md)
#   workloads/check.sh cuda       not part of all: the build for GPUs, which needs CUDA's compiler (docs/cuda.md)
set -euo pipefail
cd "$(dirname "$0")"
export CARGO_INCREMENTAL=0

# For the program around these crates, in its own workspace.
outside() { cargo "$1" --manifest-path ../Cargo.toml "${@:2}"; }

fmt() { cargo fmt --all --check; }
lint() {
    cargo clippy --workspace --all-targets -- -D warnings
    outside clippy -p gnntop --all-targets -- -D warnings
}
# Each member alone: a build of all hides a feature that one forgot to ask for.
members() { for member in data nn workloads; do cargo clippy -p "gnntop-$member" -- -D warnings; done; }
# Numbers, gradients and data, compared with what others published, and the examples in the documentation.
tests() {
    cargo test --workspace --tests
    cargo test --workspace --doc
}
# What the program publishes, finds and reports of real trainings.
program() { outside test -p gnntop --test trainings --test injected; }
# A few minutes of scripts/torture.sh, always the same: mutated recordings, hostile directories, full disks, limits, kills,
# terminals that close, silent clients. Of the program that the tests before have built.
torture() {
    if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
        echo "SKIPPED: attacks on the program need Python 3.10 or newer"
        return
    fi
    outside test -p gnntop --test trainings --test injected --no-run
    outside build -p gnntop-python
    ../scripts/torture.sh --quick --gnntop "${CARGO_TARGET_DIR:-$PWD/../target}/debug/gnntop"
}
docs() { RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps; }
package() { cargo package --quiet --workspace --no-verify --allow-dirty --offline --exclude-lockfile; }
deny() {
    if command -v cargo-deny >/dev/null; then cargo deny check --config ../deny.toml; return; fi
    echo "NOT CHECKED: known vulnerabilities of dependencies. To check them: cargo install --locked cargo-deny"
    [ -z "${GITHUB_ACTIONS:-}" ]
}
# The feature with lints, and faults of real processes. As root also two machines, made of network namespaces.
mpi() {
    cargo clippy --workspace --all-targets --features mpi -- -D warnings
    outside clippy -p gnntop --all-targets --features mpi -- -D warnings
    outside test -p gnntop --features mpi --test mpi
}
# The feature with lints, its tests (on the host where there is no GPU), and what each kernel takes of a GPU.
cuda() {
    local home=${GNNTOP_CUDA_HOME:-$PWD/../target/cuda-home}
    if [ ! -e "$home/complete" ]; then
        echo "CUDA's compiler is not at $home. To fetch it (100 MB from PyPI): scripts/cuda-home.sh $home"
        return 1
    fi
    ../scripts/cuda-home.sh "$home" ../scripts/cuda-resources.sh
    # `nccl` has all of `cuda` in it.
    ../scripts/cuda-home.sh "$home" cargo clippy --workspace --all-targets --features nccl -- -D warnings
    ../scripts/cuda-home.sh "$home" cargo clippy --manifest-path ../Cargo.toml -p gnntop --all-targets --features nccl -- -D warnings
    ../scripts/cuda-home.sh "$home" cargo test --workspace --features nccl --lib --test cuda --test nccl
}

if [ $# -eq 0 ]; then set -- fmt lint members tests program torture docs package deny; fi
for part in "$@"; do
    echo "== workloads: $part"
    begin=$SECONDS
    "$part"
    echo "== workloads: $part: ok after $((SECONDS - begin)) s"
done

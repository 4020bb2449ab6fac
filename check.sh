#!/usr/bin/env bash
# Everything that must hold before a change lands, but for the built-in trainings, which have `workloads/check.sh`; CI runs both.
# Needs Rust and a C compiler, nothing else.
#
#   ./check.sh            all of it
#   ./check.sh fmt lint   only these: fmt words lint members systems workspace docs package python deny
#   ./check.sh quick      not part of all: what to run before each commit, some minutes after a first build (CONTRIBUTING.md)
#   ./check.sh python     the Python package: part of all where scripts/python-env.sh has made its environment, else skipped, and said
set -euo pipefail
cd "$(dirname "$0")"
# What speeds up the next small edit costs as much disk as the build itself.
export CARGO_INCREMENTAL=0
# One choice of members and features for all parts, so that nothing is compiled twice: the program without its trainings, which
# is the small viewer and recorder.
readonly ALL=(--workspace --no-default-features --features gnntop-probe/tracing)

fmt() { cargo fmt --all --check; }
# Spelling, everywhere. `tests/words.rs` holds what else is said of words.
words() {
    if command -v typos >/dev/null; then typos; else echo "SKIPPED: spelling is not checked. To install it: pip install typos"; fi
}
lint() { cargo clippy "${ALL[@]}" --all-targets -- -D warnings; }
# The faults that most changes make: format, words, lints (Python's too, where its environment is), and the tests that start no
# programs.
quick() {
    fmt
    words
    lint
    cargo test "${ALL[@]}" --lib --test circles
    cargo test "${ALL[@]}" --test it -- --skip died:: --skip faults:: --skip mutants:: --skip owner:: --skip python:: \
        --skip recording:: --skip restarts:: --skip run_screen:: --skip running:: --skip screen_pty:: --skip stacks:: \
        --skip study:: --skip tasks:: --skip terminal:: --skip tracing::
    local home
    if home=$(scripts/python-env.sh --path); then python_lint "$home/bin"; fi
}
# Each member alone: in a workspace build features that one crate asks for hide what another forgot to ask for. That shows
# when it compiles; the tests need no build of their own for it.
members() {
    for member in wire history sensors sessions probe analysis python; do cargo clippy -p "gnntop-$member" -- -D warnings; done
    cargo clippy -p gnntop --no-default-features -- -D warnings
}
# The program that reads, for macOS and Windows: it compiles.
systems() { scripts/other-systems.sh; }
# Every test, in one build, and the examples in the documentation. Traces that others published lie beside the repository.
workspace() {
    cargo test "${ALL[@]}" --tests
    cargo test "${ALL[@]}" --doc
    if [ -d "${GNNTOP_SHARED:-../shared}/data" ]; then
        cargo test "${ALL[@]}" --test it import::published -- --ignored
    fi
}
# The crates' documentation, and the site. `tests/documents.rs` holds the site's pages and links.
docs() {
    RUSTDOCFLAGS="-D warnings" cargo doc "${ALL[@]}" --no-deps
    if command -v mdbook >/dev/null; then mdbook build; else echo "SKIPPED: the site. To build it: cargo install --locked mdbook"; fi
}
# Every crate that is to be published packs; that each builds from its package, `members` has shown.
# No lock file is packed here: that would take the trainings from the registry, where they are only after a release.
package() { cargo package --quiet --workspace --no-verify --allow-dirty --offline --exclude-lockfile; }
# Known vulnerabilities and yanked versions, from a database on the network. Licences and sources are held by
# `tests/dependencies.rs` too, everywhere and without a tool.
deny() {
    if command -v cargo-deny >/dev/null; then cargo deny check; return; fi
    echo "NOT CHECKED: known vulnerabilities of dependencies. To check them: cargo install --locked cargo-deny"
    # GitHub's machines have what it takes (scripts/ci-tools.sh): there, nothing is left out in silence.
    [ -z "${GITHUB_ACTIONS:-}" ]
}
# The Python package: format, lints and types, then tests that train with the real libraries, alone and under gnntop.
python() {
    local home
    if ! home=$(scripts/python-env.sh --path); then
        echo "SKIPPED: the Python package is not checked. Its environment (6 GB from PyPI): scripts/python-env.sh"
        return
    fi
    python_lint "$home/bin"
    cargo build -p gnntop -p gnntop-python --no-default-features
    (cd python && "$home/bin/python" -m pytest --quiet tests)
}
python_lint() {
    local bin=$1
    (
        cd python
        local paths=(. ../scripts/corpus*.py ../scripts/{python-cost,conda,gpu-sensors,torch-on-gpu,far}.py ../scripts/{public,torture})
        "$bin/ruff" format --check "${paths[@]}"
        "$bin/ruff" check "${paths[@]}"
        "$bin/mypy" --config-file mypy.ini
    )
}
if [ $# -eq 0 ]; then set -- fmt words lint members systems workspace docs package python deny; fi
for part in "$@"; do
    echo "== $part"
    begin=$SECONDS
    "$part"
    echo "== $part: ok after $((SECONDS - begin)) s"
done
echo "The built-in trainings have checks of their own: workloads/check.sh"

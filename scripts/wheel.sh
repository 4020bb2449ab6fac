#!/usr/bin/env bash
# Makes what pip installs. packaging/pip_backend.py does it, and says what is in it and which variables it takes.
#
#   scripts/wheel.sh [FOLDER]                 the wheel `gnntop`, of the small program, into FOLDER (default target/wheels)
#   scripts/wheel.sh --all [FOLDER]           and the wheel `gnntop-trainings` and the source distribution
#   scripts/wheel.sh --test [--all] [FOLDER]  and installs them into fresh environments, where they must work
set -euo pipefail
cd "$(dirname "$0")/.."
GNNTOP_COMMIT=$(git rev-parse --short HEAD 2>/dev/null || true) && export GNNTOP_COMMIT
test=no kinds=(wheel)
if [ "${1:-}" = --test ]; then test=yes && shift; fi
if [ "${1:-}" = --all ]; then kinds=(wheel trainings sdist) && shift; fi
out=${1:-target/wheels}
if [ -n "${TARGET:-}" ] && [ "$test" = yes ]; then echo "what is built for $TARGET can only be tested there" >&2 && exit 2; fi

mkdir -p "$out"
files=$(python3 packaging/pip_backend.py "$out" "${kinds[@]}")
echo "$files"
# What the index will find of the libraries that they need.
if ! command -v auditwheel >/dev/null; then
    echo "SKIPPED: auditwheel show. To install it: pip install auditwheel"
else
    for file in $files; do if [[ $file == *.whl ]]; then auditwheel show "$file"; fi; done
fi
if [ "$test" = no ]; then exit; fi

environments=$(mktemp -d)
trap 'rm -rf "$environments"' EXIT
# The package alone, and a program under `gnntop run`, which finds what it carries.
cat >"$environments/steps.py" <<'END'
import gnntop
for _ in range(10):
    with gnntop.span("work"):
        pass
    gnntop.step()
assert gnntop.report()["steps"]["total"] >= 9, gnntop.report()["steps"]
END
export GNNTOP_DIR=$environments/sessions XDG_CACHE_HOME=$environments/cache
# works REQUIREMENT...: pip installs this, and it works.
works() {
    local environment
    environment=$(mktemp -d -p "$environments")
    python3 -m venv "$environment"
    "$environment/bin/pip" install --quiet --no-index --find-links "$out" "$@"
    (cd "$environment" && PATH=$environment/bin:$PATH bin/python ../steps.py && bin/gnntop run -- bin/python ../steps.py)
    if [ -e "$environment/bin/gnntop-trainings" ]; then "$environment/bin/gnntop" train pna --steps 3; fi
    echo "$* works in a fresh environment"
}
works gnntop
if [ ${#kinds[@]} -gt 1 ]; then
    works 'gnntop[trainings]'
    # What is compiled already is not compiled again.
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
    works "$(grep 'tar.gz$' <<<"$files")"
fi

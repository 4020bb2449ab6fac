#!/usr/bin/env bash
# Attacks gnntop in every way docs/reliability.md makes a promise about, and prints a table of attacks, tries and failures.
#
#   scripts/torture.sh                   about half an hour, with a release build and a new seed
#   scripts/torture.sh --quick           the part that workloads/check.sh runs, with a fixed seed
#   scripts/torture.sh --only mutants    one attack; --help lists them
#   scripts/torture.sh --old PROGRAM     with another version of gnntop on the same sessions
#   scripts/torture.sh --soak 1          only an hour of a training with a viewer, whose memory is watched
#   scripts/torture.sh --soak-python 2 --python PYTHON   only a PyTorch training, stacks, a viewer and a scraper, watched for two hours
#
# Needs Python 3.10 or newer. With one that has torch (scripts/python-env.sh, or --python) it attacks trainings, too; as root it
# also fills a small disk.
set -euo pipefail
cd "$(dirname "$0")/.."
case " $* " in *" --gnntop "* | *" --help "*) ;; *) cargo build --release --quiet ;; esac
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    echo "the attacks need Python 3.10 or newer" >&2
    exit 1
fi
exec python3 scripts/torture "$@"

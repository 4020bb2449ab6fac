#!/bin/sh
# Draws every picture in docs/screens from one recording of a training run.
#
#     cargo build --release --example screenshot
#     gnntop train pna --steps 300 --inject stall:130ms@every=40,mark=gc --inject faults:64MiB@every=37 --record tour.gnntop
#     scripts/screens.sh tour.gnntop
set -eu
if [ $# -ne 1 ]; then
    echo "usage: scripts/screens.sh RECORDING" >&2
    exit 2
fi
recording=$1
screenshot=${SCREENSHOT:-target/release/examples/screenshot}
screens=$(dirname "$0")/../docs/screens

draw() { # name, size, then options of screenshot
    name=$1 size=$2
    shift 2
    "$screenshot" "$recording" -o "$screens/$name.svg" --size "$size" "$@"
}

draw overview 104x31
draw steps 104x32 --keys '2 ['
draw findings 104x30 --keys 8
draw latency 104x32 --keys 3
draw tracks 104x30 --keys 7
draw light 104x31 --background light
"$(dirname "$0")/tour.py" "$recording" -o "$screens/tour.svg" --screenshot "$screenshot"

#!/usr/bin/env bash
# Draws every picture in docs/screens: each view at two sizes, and the animation of the README, from recordings that are in the
# repository (`gnntop demo` plays most of them). Some seconds.
#
#     cargo build --release --no-default-features --example screenshot
#     scripts/screens.sh
set -euo pipefail
cd "$(dirname "$0")/.."
screenshot=${SCREENSHOT:-target/release/examples/screenshot}
screens=docs/screens
demo=recordings/demo
labelled=recordings/labelled

# view NAME RECORDING KEYS [OPTION...]: the view NAME, as it is after these keys.
view() {
    local name=$1 recording=$2 keys=$3 size
    shift 3
    for size in 80x24 120x36; do
        "$screenshot" "$recording.gnntop" -o "$screens/$name-$size.svg" --size "$size" --keys "$keys" "$@"
    done
}

rm -f "$screens"/*.svg
view overview $demo/loader ''
view light $demo/loader '' --background light
view steps $demo/gc '2 s'
view step $demo/gc '2 s Enter'
view latency $demo/gc 3
view memory $demo/leak 4
view hardware $demo/loader 5
view energy $demo/loader 6
view tracks $demo/loader 7
view findings $demo/loader 8
view compare $labelled/slow-loader-worse 9 --against $labelled/slow-loader.gnntop
view ranks $demo/straggler R
view pipeline $labelled/stages-unbalanced P
view marks $demo/gc m
view help $demo/loader '?'
scripts/tour.py $demo/loader.gnntop -o "$screens/tour.svg" --screenshot "$screenshot"
du --apparent-size --total --block-size=1K "$screens" | tail -1

#!/usr/bin/env bash
# A long run with a viewer: `gcn` at full rate with a viewer in a terminal, for an hour by default. Reports every minute
# what the run, the viewer and the session take; at the end, what a late viewer sees, and how soon. Needs Linux,
# `script` (util-linux) and a built gnntop. The figures are in docs/performance.md.
#
#   scripts/soak.sh                     an hour
#   scripts/soak.sh --minutes 10 --gnntop target/release/gnntop -- train pna
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=60 gnntop=target/release/gnntop
while [ $# -gt 0 ]; do
    case $1 in
        --minutes) minutes=$2; shift 2 ;;
        --gnntop) gnntop=$2; shift 2 ;;
        --) shift; break ;;
        *) echo "soak.sh: unknown option '$1'; see the top of the script" >&2; exit 2 ;;
    esac
done
[ $# -gt 0 ] || set -- train gcn --runs 1000000000

home=$(mktemp -d)
training= viewer= keys=
trap 'kill $training $viewer $keys 2>/dev/null || true; rm -rf "$home"' EXIT
export GNNTOP_DIR=$home/sessions XDG_CACHE_HOME=$home/cache TERM=xterm-256color

"$gnntop" "$@" >"$home/output" 2>&1 &
training=$!
until [ -n "$(ls "$GNNTOP_DIR" 2>/dev/null)" ]; do
    kill -0 $training 2>/dev/null || { echo "soak.sh: the training ended:" >&2; tail -5 "$home/output" >&2; exit 1; }
    sleep 0.2
done
# A keyboard that no one presses.
mkfifo "$home/keys"
sleep 1000000 >"$home/keys" &
keys=$!
script --quiet --return --command "stty cols 120 rows 40; exec $gnntop attach" /dev/null >/dev/null 2>&1 <"$home/keys" &
sleep 2
viewer=$(pgrep -n -f "^$gnntop attach" || true)
[ -n "$viewer" ] || { echo "soak.sh: the viewer did not start" >&2; exit 1; }

# Seconds of CPU time of a process, and its memory in MiB.
cpu() { awk '{ sub(/.*\) /, ""); print ($12 + $13) / 100 }' "/proc/$1/stat"; }
rss() { awk '/^VmRSS/ { printf "%.1f", $2 / 1024 }' "/proc/$1/status"; }

printf '%6s %12s %12s %12s %12s\n' minute "train MiB" "viewer MiB" "viewer CPU" "session MiB"
before=$(cpu $viewer)
for minute in $(seq "$minutes"); do
    sleep 60
    after=$(cpu $viewer)
    share=$(awk "BEGIN { printf \"%.1f %%\", ($after - $before) / 60 * 100 }")
    size=$(du -sk "$GNNTOP_DIR" | awk '{ printf "%.1f", $1 / 1024 }')
    printf '%6s %12s %12s %12s %12s\n' "$minute" "$(rss $training)" "$(rss $viewer)" "$share" "$size"
    before=$after
done

echo "who comes late:"
session=$(ls -d "$GNNTOP_DIR"/*/ | head -1)
begin=$(date +%s%N)
"$gnntop" record "$session" --last 1s -o "$home/late.gnntop" >/dev/null
echo "  reads the whole session in $(( ($(date +%s%N) - begin) / 1000000 )) ms"

#!/usr/bin/env bash
# What the commands that read say of the recordings here, a file for each: the same on every system (docs/platforms.md).
#
#   scripts/reading.sh FOLDER PROGRAM...    into FOLDER; such as `scripts/reading.sh linux target/debug/gnntop`
#   scripts/reading.sh --compare A B        and then: no file of B differs from that of A
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$1" = --compare ]; then
    # Lines end in the system's own way only where a checkout made them so.
    diff --recursive --brief --strip-trailing-cr "$2" "$3"
    echo "$3 is $2, $(find "$2" -type f | wc -l) files"
    exit
fi
out=$1
shift
mkdir -p "$out"
GNNTOP_DIR=$(mktemp -d) && export GNNTOP_DIR
trap 'rm -r "$GNNTOP_DIR"' EXIT
# say NAME ARGUMENT...: what the program prints, and its exit code.
say() {
    local name=$1 code=0
    shift
    "${program[@]}" "$@" >"$out/$name" 2>"$out/$name.notes" || code=$?
    echo "exit code $code" >>"$out/$name.notes"
    sed -i.bak "s|$out|FOLDER|g" "$out/$name.notes"
    rm "$out/$name.notes.bak"
}
program=("$@")
for recording in recordings/demo/*.gnntop recordings/golden/*.gnntop; do
    name=$(basename "$recording" .gnntop)
    say "$name.txt" report "$recording"
    say "$name.json" report "$recording" --json
    for form in chrome csv emissions hlog ndjson openmetrics parquet perfetto; do
        say "$name.$form.said" export "$recording" --to "$form" -o "$out/$name.$form"
    done
done
say loader.html report recordings/demo/loader.gnntop --html
say loader.md report recordings/demo/loader.gnntop --markdown
say compared.txt compare recordings/demo/loader.gnntop recordings/demo/gc.gnntop
say checked.txt check recordings/demo/loader.gnntop --max 'gap.share=5%' --max 'step.p99=1ms'
# A report names the table that it was made from, and says when: in its first line.
mkdir -p target
printf 'step,epoch,step_ms,data_ms\n1,1,20,5\n2,1,21,6\n3,1,90,70\n' >target/steps.csv
say imported.said import csv target/steps.csv -o target/steps.gnntop --force
say imported.txt report target/steps.gnntop
sed -i.bak 1d "$out/imported.txt"
rm "$out/imported.txt.bak"
say replayed.txt replay recordings/demo/gc.gnntop --speed 100 --plain
if ! grep --quiet 'data-bound' "$out/loader.txt"; then echo "no report was written" >&2 && exit 1; fi

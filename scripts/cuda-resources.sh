#!/usr/bin/env bash
# Compiles every kernel of workloads/nn/kernels for one GPU and prints what it takes of a multiprocessor: registers per
# thread, the share of the multiprocessor's threads that can then be resident (blocks of 256, 65,536 registers and 2048
# threads, as sm_80 and sm_90 have them), shared memory of a block, and bytes of local memory a thread, which is slow
# (spilled registers, arrays). Fails where there is any.
#
#   scripts/cuda-home.sh DIR scripts/cuda-resources.sh [sm_90]
set -euo pipefail
cd "$(dirname "$0")/../workloads/nn/kernels"
architecture=${1:-sm_90}
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT

for file in *.cu; do
    "${NVCC:-nvcc}" -cubin -arch="$architecture" -O3 -std=c++17 -Xptxas -v "$file" -o "$scratch/kernels.cubin" \
        2>"$scratch/report" || { cat "$scratch/report" >&2; exit 1; }
    # ptxas writes three lines for each kernel: its name, its stack and spills, its registers.
    awk -v file="$file" '
        /Compiling entry function/ { split($0, part, "\047"); name = part[2] }
        /bytes stack frame/ { stack = $1; spilled = $5 + $9 }
        /Used [0-9]+ registers/ { match($0, /Used [0-9]+/); used = substr($0, RSTART + 5, RLENGTH - 5); shared = 0; if (match($0, /[0-9]+ bytes smem/)) shared = substr($0, RSTART, RLENGTH) + 0; print file, name, used, stack, spilled, shared }
    ' "$scratch/report"
done | sort >"$scratch/table"

# One row for each kernel; its number types side by side.
awk '
    { type = "all"; name = $2; if (match(name, /_(f32|f64|bf16|f16)$/)) { type = substr(name, RSTART + 1); name = substr(name, 1, RSTART - 1) } }
    { key = $1 " | `" name "`"; if (!(key in seen)) { seen[key] = 1; order[++count] = key } registers[key, type] = $3; local += $4 + $5; if ($6 > shared) { shared = $6; widest = $2 } if ($4 + $5 > 0) bad = bad " " $2 }
    # Registers are given to warps in pieces of 256.
    function occupancy(used) { blocks = int(65536 / (8 * 256 * int((used * 32 + 255) / 256))); return (blocks > 8 ? 8 : blocks) * 12.5 }
    function cell(key, type) { return (key, type) in registers ? sprintf("%d, %.0f %%", registers[key, type], occupancy(registers[key, type])) : "" }
    END {
        print "| file | kernel | f32 | f64 | bf16 | f16 |"
        print "|---|---|---|---|---|---|"
        for (i = 1; i <= count; ++i) {
            key = order[i]
            first = (key, "all") in registers ? cell(key, "all") : cell(key, "f32")
            print "| " key " | " first " | " cell(key, "f64") " | " cell(key, "bf16") " | " cell(key, "f16") " |"
        }
        print NR " kernels; shared memory of a block at most " shared + 0 " bytes (" widest "); bytes of local memory, spills included: " local + 0
        if (bad) { print "kernels with local memory:" bad > "/dev/stderr"; exit 1 }
    }
' "$scratch/table"

#!/usr/bin/env bash
# Everything that needs a GPU, in one run: about 12 minutes on an H200.
#
#   scripts/on-gpu.sh pack DIR [CORA]     here: build with CUDA and put all that is needed into DIR (50 MB by estimate), to be
#                                         carried; CORA is a folder with Cora's tables
#   DIR/on-gpu.sh run RESULTS [DEVICE [PART...]]
#                                         there: run all of it on DEVICE (cuda:0) and write one folder of results. Needs a
#                                         driver for CUDA 13.0, Python 3 and its PyTorch; no cargo, no network. Parts, to
#                                         be run one after the other into the same folder where time is given in pieces:
#                                         tests kernels pna gcn sage gat vig ranks publish pytorch sensors sanitize
#   DIR/on-gpu.sh try RESULTS             the same with small sizes on the CPU: whether everything starts
#
# RESULTS/summary.md has the figures beside their targets; each run has its output in a file of its own and, where it is
# a training of gnntop's, its recording. What fails or takes too long is said there, and the rest runs on.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

usage() {
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
    exit 2
}

# PyTorch Geometric, and what it needs besides PyTorch.
geometric="torch_geometric==2.8.1 aiohttp aiosignal aiohappyeyeballs attrs frozenlist multidict propcache yarl idna fsspec jinja2
    markupsafe psutil pyparsing requests urllib3 certifi charset-normalizer tqdm xxhash typing_extensions"

# The builds, carried compressed: much of their size is candle's kernels that are not used.
programs="gnntop cuda-test nccl-test device-bench"

# The path of the newest program that cargo built for a test or benchmark.
built() { find "${CARGO_TARGET_DIR:-$here/../target/cuda}/release/deps" -maxdepth 1 -name "$1-*" -type f -executable -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2-; }

pack() {
    mkdir -p "$1/wheels"
    local target=$1 cora=${2:-}
    (cd "$here/.." && cargo build --release --features nccl &&
        cd workloads &&
        cargo test --release --no-run --features nccl --test cuda --test nccl &&
        cargo bench --no-run --features nccl --bench device)
    cp "${CARGO_TARGET_DIR:-$here/../target/cuda}/release/gnntop" "$target/gnntop"
    cp "$(built cuda)" "$target/cuda-test"
    cp "$(built nccl)" "$target/nccl-test"
    cp "$(built device)" "$target/device-bench"
    for program in $programs; do strip "$target/$program" && gzip -9 --force "$target/$program"; done
    cp "$here/on-gpu.sh" "$here"/{on-gpu,peer-on-gpu,torch-on-gpu,gpu-sensors}.py "$target/"
    if [ -n "$cora" ]; then mkdir -p "$target/cora" && cp "$cora"/cora.*.tsv "$target/cora/"; fi
    # PyTorch Geometric is pure Python, but some of its requirements are not: for each Python that may be there. PyTorch
    # is already installed.
    for python in 3.10 3.11 3.12 3.13; do
        python3 -m pip download --quiet --disable-pip-version-check --dest "$target/wheels" --no-deps --only-binary=:all: \
            --python-version "$python" --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 --platform manylinux2010_x86_64 \
            $geometric || echo "without PyTorch Geometric's wheels for Python $python: a GPU machine with that must have it"
    done
    echo "$target: $(du -sm "$target" | cut -f1) MiB to be carried"
}

# One run: its name, the most seconds it may take, the command. Its output goes into a file, its time into another.
one() {
    local name=$1 seconds=$2 begin=$SECONDS status=0
    shift 2
    echo "== $name"
    timeout --kill-after=10 "$seconds" "$@" >"$results/$name.log" 2>&1 || status=$?
    echo "$name $status $((SECONDS - begin))" >>"$results/runs.txt"
    if [ "$status" != 0 ]; then echo "   status $status after $((SECONDS - begin)) s: $(tail -n 1 "$results/$name.log")"; fi
}

# One of our training runs, recorded, with its report.
ours() {
    local name=$1 seconds=$2
    shift 2
    one "$name" "$seconds" "$here/gnntop" train "$@" --device "$device" --record "$results/$name.gnntop"
    if [ -e "$results/$name.gnntop" ]; then
        "$here/gnntop" report "$results/$name.gnntop" --json --skip-steps 5 >"$results/$name.json" 2>/dev/null || true
    fi
}

peer() {
    local name=$1 seconds=$2
    shift 2
    one "$name" "$seconds" "$python" "$here/peer-on-gpu.py" "$@" --device "${device%%:*}" --steps "$peer_steps"
}

# The programs, the machine, its libraries, and Python with PyTorch Geometric.
prepare() {
    for program in $programs; do
        if [ -e "$here/$program.gz" ]; then gzip -dc "$here/$program.gz" >"$here/$program" && chmod +x "$here/$program"; fi
    done
    touch "$results/runs.txt"
    { date; uname -a; nvidia-smi; nvcc --version; } >"$results/machine.log" 2>&1 || true
    local wheels
    wheels=$(python3 -c 'import nvidia; print(":".join(p + "/" + d + "/lib" for p in nvidia.__path__ for d in ("cu13", "cublas", "curand", "cuda_nvrtc", "nccl")))' 2>/dev/null || true)
    export LD_LIBRARY_PATH="$wheels:/usr/local/cuda/lib64:/usr/local/nvidia/lib64:${LD_LIBRARY_PATH:-}"
    # The driver's compiled kernels are kept, so that only the first run waits for them.
    export CUDA_CACHE_PATH="$results/cache" CUDA_CACHE_MAXSIZE=4294967296
    python=python3
    if [ -x "$results/venv/bin/python" ]; then python="$results/venv/bin/python"
    elif ! python3 -c 'import torch_geometric' 2>/dev/null; then
        python3 -m venv --system-site-packages "$results/venv" >/dev/null &&
            "$results/venv/bin/pip" install --quiet --no-index --no-deps --find-links "$here/wheels" $geometric &&
            python="$results/venv/bin/python" || echo "PyTorch Geometric cannot be installed: no peers"
    fi
}

# The parts, the most important first in case the time runs out.
parts="tests kernels pna gcn sage gat vig ranks publish pytorch sensors sanitize"

tests() { one device-test "$long" "$here/cuda-test" --nocapture; }

kernels() { one device-bench "$long" "$here/device-bench" "$device"; }

pna() {
    for batch in $pna_batches; do
        ours "pna-$batch" "$long" pna --preset "$preset" --graphs "$graphs" --batch-size "$batch" --steps "$steps" --workers "$workers"
        peer "peer-pna-$batch" "$long" pna --batch "$batch" $peer_pna
    done
}

gcn() {
    local data="" cora=""
    if [ -d "$here/cora" ]; then data="--data $here/cora" cora="--cora $here/cora"; fi
    ours gcn "$long" gcn --mode all --recipe study --runs 4 --epochs "$epochs" $data
    peer peer-gcn "$short" gcn $cora
}

sampled() {
    local all="--preset $preset $reddit $reddit_batch --steps $steps --workers $workers"
    ours "$1" "$long" "$1" $all
    ours "$1-held" "$long" "$1" $all --features-on-device
    ours "$1-held-subgraph" "$long" "$1" $all --features-on-device --form subgraph
    peer "peer-$1" "$long" "$1" $reddit
    peer "peer-$1-resident" "$long" "$1" $reddit --resident
}

sage() { sampled sage; }

gat() { sampled gat; }

vig() { ours vig "$long" vig $vig_size --steps "$steps" --workers "$workers"; }

# A rank on every GPU: NCCL beside threads, which share the first, and the tests of it.
ranks() {
    local gpus engines="threads nccl"
    gpus=$(nvidia-smi --list-gpus 2>/dev/null | grep -c '^GPU' || true)
    if [ "$device" = cpu ]; then gpus=2 engines=threads; else one nccl-test "$long" "$here/nccl-test" --nocapture; fi
    for engine in $engines; do
        ours "sage-$engine" "$long" sage --preset "$preset" $reddit $reddit_batch --steps "$steps" --workers "$workers" --ranks "$gpus" --engine "$engine"
    done
}

# Publishing on and off, in the order ABBA, by the median epoch that GCN reports: its steps are the shortest. And the
# cost of a step if it waits for the device after every span, if this gnntop has the option.
publish() {
    local turn=0 options="gcn --mode compiled --recipe study --runs 1 --epochs $overhead_steps"
    for state in on off off on on off off on; do
        turn=$((turn + 1))
        if [ "$state" = on ]; then one "publish-$turn-on" "$short" "$here/gnntop" train $options --device "$device" --record "$results/publish-$turn.gnntop"
        else one "publish-$turn-off" "$short" env GNNTOP=0 "$here/gnntop" train $options --device "$device"; fi
    done
    if "$here/gnntop" train pna --help 2>/dev/null | grep -q -- '--sync'; then
        ours publish-sync "$short" pna --preset "$preset" --graphs "$graphs" --steps "$steps" --workers "$workers" --sync
    fi
}

# PyTorch alone and under `gnntop run`: the same hashes, and phases by its own events beside the report's.
pytorch() {
    local ways="clean amp compile reads slow inference" run="$python $here/torch-on-gpu.py" sizes="$torch_sizes --device ${device%%:*}"
    if [ "$device" != cpu ]; then ways="$ways graph streams"; fi
    for way in $ways; do
        one "torch-$way-alone" "$short" $run "$way" $sizes
        one "torch-$way" "$short" "$here/gnntop" run --record "$results/torch-$way.gnntop" -- $run "$way" $sizes --events
        "$here/gnntop" report "$results/torch-$way.gnntop" >"$results/torch-$way.report" 2>/dev/null || true
    done
}

sensors() { if [ "$device" != cpu ]; then one sensors "$short" "$python" "$here/gpu-sensors.py"; fi; }

# Accesses out of bounds and races, if CUDA's tool is installed.
sanitize() {
    if ! command -v compute-sanitizer >/dev/null; then echo "sanitizer: compute-sanitizer is not here" >"$results/sanitizer.log"; return; fi
    for tool in memcheck racecheck; do
        one "sanitize-$tool" "$long" compute-sanitizer --tool "$tool" --error-exitcode 1 "$here/gnntop" train gat --device "$device" --nodes 2000 --edges 40000 --steps 2 --workers 0
    done
}

full() {
    preset=study graphs=100000 steps=200 epochs=50 workers=8 peer_steps=30 overhead_steps=4000 long=180 short=60
    pna_batches="512 4096" peer_pna="" reddit="" reddit_batch="" vig_size="--preset study" torch_sizes=""
}

small() {
    device=cpu preset=default graphs=200 steps=12 epochs=2 workers=1 peer_steps=2 overhead_steps=20 long=100 short=60
    pna_batches="32" peer_pna="--layers 2 --hidden 8" reddit="--nodes 2000 --edges 20000" reddit_batch="--batch-size 32" vig_size="--batch-size 2" torch_sizes="--width 32 --layers 2 --batch 16 --steps 12"
}

case ${1:-} in
pack) [ $# -ge 2 ] || usage; pack "$(mkdir -p "$2" && cd "$2" && pwd)" "${3:-}" ;;
run | try)
    [ $# -ge 2 ] || usage
    results=$(mkdir -p "$2" && cd "$2" && pwd)
    device=${3:-cuda:0}
    full
    if [ "$1" = try ]; then small; fi
    prepare
    if [ $# -gt 3 ]; then parts=${*:4}; fi
    for part in $parts; do "$part"; done
    python3 "$here/on-gpu.py" "$results" | tee "$results/summary.md"
    ;;
*) usage ;;
esac

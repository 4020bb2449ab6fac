#!/usr/bin/env bash
# Records what `gnntop demo` shows, in some three minutes on a quiet machine. Needs PyTorch.
#
#     cargo build --release
#     scripts/demos.sh PYTHON [FAULT...]
set -euo pipefail
python=${1:?usage: scripts/demos.sh PYTHON [FAULT...]}
shift
demos=$(cd "$(dirname "$0")/../recordings/demo" && pwd)
gnntop=${GNNTOP:-$(cd "$demos/../.." && pwd)/target/release/gnntop}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$demos/train.py" "$work"
cd "$work"
export GNNTOP_DIR=$work/sessions
# Without these, memory that malloc returns and takes again would be a fault of its own.
export MALLOC_TRIM_THRESHOLD_=4000000000 MALLOC_MMAP_THRESHOLD_=4000000000
echo "127.0.0.1 localhost workstation" >"$work/hosts"
[ $# -gt 0 ] || set -- loader gc leak straggler hang
for fault in "$@"; do
    command=(python train.py "$fault")
    [ "$fault" != straggler ] || command=(python -m torch.distributed.run --nproc-per-node 2 train.py "$fault")
    # A recording has the names of the machine and of Python's folder: these are nobody's.
    environment=$(dirname "$(dirname "$python")") unshare --uts --mount --map-root-user bash -c '
        hostname workstation && mount --bind hosts /etc/hosts
        mount -t tmpfs none /opt && mkdir /opt/python && mount --bind "$environment" /opt/python
        PATH=/opt/python/bin:$PATH exec timeout --signal INT 55 "$@"
    ' bash "$gnntop" run --plain --record "$fault.gnntop" -- "${command[@]}" </dev/null || true
    install -m 644 "$fault.gnntop" "$demos"
done
ls -l "$demos"

#!/usr/bin/env bash
# A CUDA 13.0 compiler without a CUDA installation, a GPU, a driver or root: about 100 MB from PyPI, 300 MB on disk.
#
#   scripts/cuda-home.sh DIR                    make DIR a CUDA home, unless it is one
#   scripts/cuda-home.sh DIR COMMAND [ARG...]   then run COMMAND with everything set for a build with `--features cuda`
#
# Needs Python 3 with venv, and gcc. Later versions of the compiler write kernels that older drivers refuse.
set -euo pipefail

if [ $# -eq 0 ]; then
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
home=$(cd "$1" && pwd)
shift

if [ ! -e "$home/complete" ]; then
    python3 -m venv "$home/venv"
    # The versions that NVIDIA's cuda-toolkit 13.0.2 asks for.
    "$home/venv/bin/pip" install --quiet --disable-pip-version-check \
        nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 \
        nvidia-cuda-cccl==13.0.85 nvidia-cuda-runtime==13.0.96
    wheels=$(realpath "$home"/venv/lib/python3*/site-packages/nvidia/cu13)
    for part in bin include nvvm; do ln -sfn "$wheels/$part" "$home/$part"; done
    mkdir -p "$home/lib64"
    # Names for the linker to find. They are not used: the libraries are opened at run time.
    for library in cuda nvrtc curand cublas cublasLt; do
        gcc -shared -o "$home/lib64/lib$library.so" -x c /dev/null
    done
    # candle's kernels ask for a shared run time: the static one makes one file of it.
    echo "INPUT($wheels/lib/libcudart_static.a)" >"$home/lib64/libcudart.so"
    ln -sfn "$wheels/lib/libcudart_static.a" "$home/lib64/libcudart_static.a"
    "$home/bin/nvcc" --version >"$home/complete"
fi
if [ $# -eq 0 ]; then
    echo "$home is a CUDA home; build with: $0 $home cargo build --release --features cuda"
    exit 0
fi

export CUDA_HOME=$home NVCC=$home/bin/nvcc
export CUDARC_CUDA_VERSION=13000 NVCC_APPEND_FLAGS=--compress-mode=size
# The GPU the kernels are compiled for: 90 is Hopper (H100, H200), 80 is A100, 89 is RTX 40.
export CUDA_COMPUTE_CAP=${CUDA_COMPUTE_CAP:-90}
export RUSTC_WRAPPER=$here/cuda-rustc.sh
# These builds differ from builds without CUDA: they must not share files.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/../target/cuda}
exec "$@"

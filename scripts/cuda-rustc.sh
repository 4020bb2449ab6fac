#!/bin/sh
# A RUSTC_WRAPPER for builds with the feature `cuda`. It compiles cudarc, and nothing else, so that CUDA's libraries are
# opened at first use: the program then starts on machines without them. candle asks cudarc to link them instead, and
# cargo offers no way to ask for the other. Cargo does not notice a change of this file: use a separate target
# directory.
rustc=$1
shift
case " $* " in
*" --crate-name cudarc "*) exec "$rustc" "$@" --cfg 'feature="dynamic-loading"' ;;
*) exec "$rustc" "$@" ;;
esac

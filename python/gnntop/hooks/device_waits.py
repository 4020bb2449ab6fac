"""Waits for a device: a tensor's values are read, it is copied to the CPU, or the program asks for it.

Nothing is replaced: native code makes the built-in functions themselves call it. See ``python/src/device_waits``.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from .. import _native

# The layout of built-in functions is known for these Pythons.
_OLDEST, _NEWEST = (3, 10), (3, 15)

_VALUES = ("item", "tolist", "__float__", "__int__", "__index__", "__bool__")
_TENSORS = ("cpu", "nonzero")
_SYNCHRONIZES = ("_cuda_synchronize", "_mps_deviceSynchronize", "_xpu_synchronize")
_HAVE_SYNCHRONIZE = ("_CudaStreamBase", "_CudaEventBase")


def install(torch: ModuleType) -> None:
    """Counts and times the waits of the threads that train."""
    if sys.implementation.name != "cpython" or not _OLDEST <= sys.version_info[:2] <= _NEWEST:
        return
    for names, how in ((_VALUES, _native.FOR_VALUE), (_TENSORS, _native.FOR_TENSOR)):
        for name in names:
            _watch(_own(torch.Tensor, name), how)
    for name in _SYNCHRONIZES:
        _watch(getattr(torch._C, name, None), _native.ALWAYS)
    for name in _HAVE_SYNCHRONIZE:
        _watch(_own(getattr(torch._C, name, object), "synchronize"), _native.ALWAYS)


def _own(kind: type, name: str) -> Any:
    """The function itself, as the class that defines it has it."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _watch(function: Any, how: int) -> None:
    if function is not None:
        _native.watch_waits(function, how)

"""The sizes of a library's batches, read only from shapes and from what an object has of its own.

Native code finds the tensor in lists, tuples and dictionaries, and calls a reader for what is of a library's type. None
of the program's code runs: its classes may compute, draw random numbers or wait in whatever they define.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _native
from .patching import Hook

Shape = tuple[int, ...]
"""Nodes, edges, graphs, seeds, samples, as `gnntop_batch` takes them; -1 if unknown. Empty: all unknown."""


def read_with(batches: type, read: Callable[[Any], Shape]) -> None:
    """Makes `read` read batches of this type and of types derived from it."""
    hook = Hook(f"size of {batches.__name__}")

    def guarded(batch: Any) -> Shape:
        if hook.is_on:
            try:
                return read(batch)
            except BaseException as error:
                hook.failed(error)
        return ()

    _native.read_with(batches, guarded)

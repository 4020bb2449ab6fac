"""Python's garbage collector: its pauses on the training thread."""

from __future__ import annotations

import gc

from .. import _native
from .patching import guarded, on_uninstall

# Most collections are of the young generation, and short: only noticeable ones are recorded.
_SHORT_NS = 100_000
_began = 0


def install() -> None:
    """Makes the collector call us."""
    callback = guarded("gc", _collecting)
    gc.callbacks.append(callback)
    on_uninstall.append(lambda: gc.callbacks.remove(callback))


def _collecting(moment: str, info: dict[str, int]) -> None:
    global _began
    if not _native.is_here():
        return
    if moment == "start":
        _began = _native.now()
    elif _began:
        end = _native.now()
        if _native.ns(end - _began) >= _SHORT_NS:
            _native.span_at(_native.phase("gc"), _began, end)
            _native.mark_at(_native.mark_name("garbage collection"), _began, end)
        _began = 0

"""The end of a thread, as far as Python knows it.

Before Python 3.13 ``Thread.join`` returns when Python's state of the thread is gone, but before the library's own is: a
thread that is started then would get a further track instead of this one's. So a track ends with Python's state.
"""

from __future__ import annotations

import _thread
import sys
from collections.abc import Callable

_of_thread = _thread._local()


def call(end: Callable[[], None]) -> None:
    """Calls ``end`` when the calling thread ends, the first time it is asked to.

    Not for a thread that another library has made: Python's state of it is gone with each return from Python.
    """
    if not hasattr(_of_thread, "end") and _is_pythons():
        _of_thread.end = _End(end)


def _is_pythons() -> bool:
    threading = sys.modules.get("threading")
    thread = getattr(threading, "_active", {}).get(_thread.get_ident())
    return thread is not None and type(thread).__name__ != "_DummyThread"


class _End:
    """Goes with what Python keeps for a thread."""

    def __init__(self, end: Callable[[], None]) -> None:
        self.ident, self.end = _thread.get_ident, end  # the main thread's end comes after this module's
        self.thread = self.ident()

    def __del__(self) -> None:
        if self.ident() == self.thread:  # not where Python removes a daemon's
            self.end()

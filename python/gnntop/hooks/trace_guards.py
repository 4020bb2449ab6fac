"""What a deep trace must give way to.

torch.profiler is one for the whole process: while it runs, a second one that begins, the end of its thread and the end
of the interpreter crash the program. Each of them ends the trace first. A child that is forked after any use of
torch.profiler hangs when it ends, also after it was stopped: nothing here can help that.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import sys
from collections.abc import Callable
from typing import Any

from .._signals import is_the_programs

_BEGINNINGS = ("_prepare_profiler", "_enable_profiler")
"""The functions by which every profiler of ``torch.autograd.profiler`` begins."""
_End = Callable[[str], None]


def is_prepared(profiler: Any) -> bool:
    """Whether a ``torch.profiler`` of the program is in its warm-up, which torch tells nobody."""
    warm_up = profiler.ProfilerAction.WARMUP
    found = (found for found in gc.get_objects() if issubclass(type(found), profiler.profile))
    return any(vars(one).get("current_action") is warm_up for one in found)


class Guards:
    """In place while a trace runs; ``end`` ends it, for a reason."""

    def __init__(self, end: _End) -> None:
        """Puts them in place."""
        self._module = sys.modules.get("torch.autograd.profiler")
        self._replaced: list[tuple[str, Any, Any]] = []
        for name in _BEGINNINGS:
            real = getattr(self._module, name, None)
            if real is not None:
                ours = _giving_way(real, end)
                setattr(self._module, name, ours)
                self._replaced.append((name, ours, real))
        self._at_exit = functools.partial(end, "the program has ended")
        atexit.register(self._at_exit)

    def remove(self) -> None:
        """Removes them."""
        atexit.unregister(self._at_exit)
        for name, ours, real in self._replaced:
            if getattr(self._module, name, None) is ours:
                setattr(self._module, name, real)


class ThreadEnd:
    """Kept by a thread's own variables: goes with the thread, on it, and ends the trace that only it can end."""

    def __init__(self, end: _End) -> None:
        """Of this thread."""
        self._end = end

    def __del__(self) -> None:
        """The thread has ended, or this is needed no more."""
        with contextlib.suppress(Exception):
            self._end("the thread that was traced has ended")


def _giving_way(real: Callable[..., Any], end: _End) -> Callable[..., Any]:
    def begin(*args: Any, **kwargs: Any) -> Any:
        try:
            end("the program has begun a torch.profiler of its own, and torch allows only one")
        except Exception as error:
            if is_the_programs(error):
                raise
        return real(*args, **kwargs)

    return begin

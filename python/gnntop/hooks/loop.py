"""What the native rule for steps needs of Python: the session, and what a person asks for.

The rule itself is in ``python/src/steps``. Hooks report work to it with `_native.work_begin` and `_native.work_end`,
or have native code call the library's function: see `patching.watch`.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import _native
from . import deep_trace
from .patching import guarded

on_open: list[Callable[[], None]] = []
"""Called when the session opens, on the thread that trains first."""


def describe() -> tuple[str, dict[str, str]]:
    """Name and facts of the session, asked for when it opens; replaced by who knows more."""
    return "python", {}


def install() -> None:
    """Makes the native part call us."""
    _native.listen(_native.ON_OPEN, guarded("session", _open))
    _native.listen(_native.ON_REQUEST, guarded("deep trace", deep_trace.step_ended))


def _open(is_first: int) -> None:
    """Opens the track of a thread that trains, and the session before the first one."""
    if is_first:
        name, facts = describe()
        _native.open_session(name, facts)
    _native.track("train", _native.TRAINING)
    if is_first:
        for call in on_open:
            call()

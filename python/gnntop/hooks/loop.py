"""What the native rule for steps needs of Python: the session, and what a person asks for.

The rule itself is in ``python/src/steps``. Hooks report work to it with `_native.work_begin` and `_native.work_end`,
or have native code call the library's function: see `patching.watch`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from .. import _answers, _native
from . import deep_trace
from .patching import guarded

on_open: list[Callable[[], None]] = []
"""Called when the session opens, on the thread that trains first."""


_FORKED = (
    "a process that had trained or run a model has forked it; start it by spawn or forkserver, or fork before that"
)


def describe() -> tuple[str, dict[str, str]]:
    """Name and facts of the session, asked for when it opens; replaced by who knows more."""
    return "python", {}


def install() -> None:
    """Makes the native part call us."""
    _native.listen(_native.ON_OPEN, guarded("session", _open_uncompiled))
    _native.listen(_native.ON_REQUEST, guarded("deep trace", deep_trace.step_ended))
    deep_trace.on_work = guarded("memory of a deep trace", deep_trace.work_began)


def _open_uncompiled(needs: int) -> None:
    """Where this comes between two graphs, Dynamo would compile all that is called of Python's library."""
    set_callback = getattr(sys.modules.get("torch._dynamo.eval_frame"), "set_eval_frame", None)
    callback = None if set_callback is None else set_callback(None)
    try:
        _open(needs)
    finally:
        if set_callback is not None:
            set_callback(callback)


def _open(needs: int) -> None:
    """Opens the track of a thread that trains, and the session before the first one; or says that it is not seen."""
    if needs == _native.NEEDS_NOTICE:
        _answers.tell(f"problem {_FORKED}")
        return
    is_first = needs == _native.NEEDS_SESSION
    if is_first:
        name, facts = describe()
        _native.open_session(name, facts)
    _native.track("train", _native.TRAINING)
    if is_first:
        for call in on_open:
            call()

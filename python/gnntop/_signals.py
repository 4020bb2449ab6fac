"""Whether an exception that is caught in our code is the program's: then it is raised again, and never lost.

Everything of this package may catch one, so this imports nothing of it.
"""

from __future__ import annotations

import _signal
import os
from types import FunctionType, MethodType
from typing import Any

_OURS = os.path.dirname(__file__) + os.sep


def is_the_programs(error: BaseException) -> bool:
    """Whether an exception in our code came from outside: Ctrl-C, a handler of a signal, or another thread."""
    is_interrupt = isinstance(error, KeyboardInterrupt) and not error.args
    if is_interrupt and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        return True
    trace = error.__traceback__
    is_ours, codes = True, set()
    while trace is not None:
        code = trace.tb_frame.f_code
        is_ours = code.co_filename.startswith(_OURS)
        codes.add(code)
        trace = trace.tb_next
    if is_ours:  # nothing of ours raises SystemExit or KeyboardInterrupt
        return not isinstance(error, Exception)
    handlers = (_signal.getsignal(number) for number in _signal.valid_signals())
    return any(_code(handler) in codes for handler in handlers)


def _code(handler: Any) -> Any:
    handler = getattr(handler, "func", handler)  # functools.partial
    if not isinstance(handler, (FunctionType, MethodType)):
        handler = getattr(type(handler), "__call__", None)  # noqa: B004
    return getattr(getattr(handler, "__func__", handler), "__code__", None)

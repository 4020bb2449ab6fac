"""Whether an exception that is caught in our code is the program's: then it is raised again, and never lost.

Everything of this package may catch one, so this imports nothing of it.
"""

from __future__ import annotations

import _signal
import os
from opcode import opname
from types import FunctionType, MethodType, TracebackType
from typing import Any

_OURS = os.path.dirname(__file__) + os.sep
_CALLS_NOTHING = (
    "LOAD_FAST",
    "LOAD_CONST",
    "LOAD_GLOBAL",
    "LOAD_DEREF",
    "NOP",
    "POP_",
    "PUSH_NULL",
    "RESUME",
    "RETURN",
)
"""Names of instructions, or how they begin."""


def is_the_programs(error: BaseException) -> bool:
    """Whether an exception in our code came from outside: Ctrl-C, a signal's handler, another thread, or a tracer."""
    is_interrupt = isinstance(error, KeyboardInterrupt) and not error.args
    if is_interrupt and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        return True
    trace = error.__traceback__
    ours, last, codes = trace, trace, set()
    while trace is not None:
        code = trace.tb_frame.f_code
        ours, last = (trace if code.co_filename.startswith(_OURS) else ours), trace
        codes.add(code)
        trace = trace.tb_next
    if last is not None and _is_of_a_thread(error, last):
        return True
    if ours is None or last is ours:  # nothing of ours raises SystemExit or KeyboardInterrupt
        return not isinstance(error, Exception)
    handlers = (_signal.getsignal(number) for number in _signal.valid_signals())
    return any(_code(handler) in codes for handler in handlers) or _is_of_a_tracer(ours)


def _is_of_a_tracer(ours: TracebackType) -> bool:
    """Whether a tracer or a profiler, such as a debugger that is left, has called what is behind our code."""
    behind = ours.tb_next
    # A function of ours that such a one has seen return is gone.
    is_called_elsewhere = behind is not None and behind.tb_frame.f_back is not ours.tb_frame
    return is_called_elsewhere or _instruction(ours).startswith(_CALLS_NOTHING)


def _is_of_a_thread(error: BaseException, last: TracebackType) -> bool:
    """Whether another thread has raised this where nothing raises: without words, which Python and libraries have."""
    has_words = bool(error.args) or isinstance(error, (MemoryError, StopIteration))
    return not has_words and _instruction(last) not in ("RAISE_VARARGS", "RERAISE")


def _instruction(trace: TracebackType) -> str:
    return opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]]


def _code(handler: Any) -> Any:
    handler = getattr(handler, "func", handler)  # functools.partial
    if not isinstance(handler, (FunctionType, MethodType)):
        handler = getattr(type(handler), "__call__", None)  # noqa: B004
    return getattr(getattr(handler, "__func__", handler), "__code__", None)

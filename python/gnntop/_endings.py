"""Ends that Python does not see coming: a crash in native code, ``os._exit`` and ``os.exec*``.

Before the latter two, what was recorded is written out. A crash and ``os._exit`` print no traceback, so where the
program was goes into a file of this process in ``GNNTOP_ANSWERS``, never into the program's own output: ``gnntop run``
reads it to say why the program died. Whatever hangs, the program waits for it a bounded time.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from ._answers import in_time
from ._signals import is_the_programs

_MAX_FRAMES = 32
_watched = 0
"""The process that is watched, 0 for none; a child that it forks is not."""
_path = ""
"""Where its end is written."""


def watch(high: Callable[[int], int], flush: Callable[[], int]) -> None:
    """Watches this process from now on. Raises nothing of its own.

    ``high`` gives a descriptor another number, or -1: the fault handler writes into its number whatever that is by
    then, so it must be one that a program that closes all descriptors does not get for a file of its own. ``flush``
    writes out what was recorded, in a second at most, and says whether it has: after these ends nothing else can.
    """
    global _path, _watched
    directory = os.environ.get("GNNTOP_ANSWERS")
    if not directory or _watched == os.getpid():
        return
    is_wrapped = _watched != 0  # before a fork
    _watched = os.getpid()
    _path = os.path.join(directory, f"{_watched}.end")
    try:
        import faulthandler

        if not is_wrapped:
            _wrap_exit(flush)
            _wrap_exec(flush)
        # A program that has turned it on prints where it was, and wants to go on doing so.
        if not faulthandler.is_enabled():
            file = in_time(lambda: _open_high(high))
            if file >= 0:
                faulthandler.enable(file=file, all_threads=False)
    except Exception as error:
        if is_the_programs(error):
            raise


def _open() -> int:
    return os.open(_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def _open_high(high: Callable[[int], int]) -> int:
    low = _open()
    try:
        return high(low)
    finally:
        os.close(low)


def _wrap_exit(flush: Callable[[], int]) -> None:
    end = os._exit

    def _exit(status: int) -> NoReturn:
        try:
            if os.getpid() == _watched:
                flush()
                text = f"os._exit\n{_caller()}".encode("utf-8", "replace")
                in_time(lambda: os.write(_open(), text))
        finally:
            end(status)

    _put_in_place(_exit, end)


def _wrap_exec(flush: Callable[[], int]) -> None:
    """Has ``execv`` and ``execve`` flush, through which all others go."""
    can_flush = True

    def flushing(end: Callable[..., Any]) -> Callable[..., Any]:
        def flush_and_end(*args: Any, **named: Any) -> Any:
            nonlocal can_flush
            # Not again if it has taken too long: a search along PATH comes here once for each folder.
            if can_flush and os.getpid() == _watched:
                can_flush = bool(flush())
            return end(*args, **named)

        if end in os.supports_fd:
            os.supports_fd.add(flush_and_end)
        return flush_and_end

    for end in (os.execv, os.execve):
        _put_in_place(flushing(end), end)


def _put_in_place(ours: Callable[..., Any], end: Callable[..., Any]) -> None:
    """Also where pickle looks for the function, which it takes only if it is the same there."""
    functools.update_wrapper(ours, end)
    ours.__annotations__ = dict(getattr(end, "__annotations__", {}))  # a built-in function has none
    for module in (os, sys.modules.get(end.__module__)):
        if getattr(module, end.__name__, None) is end:
            setattr(module, end.__name__, ours)


def _caller() -> str:
    """The frames outside this file, innermost first, as the fault handler writes them."""
    lines: list[str] = []
    frame = sys._getframe(2)
    while frame is not None and len(lines) < _MAX_FRAMES:
        code = frame.f_code
        lines.append(f'  File "{code.co_filename}", line {frame.f_lineno} in {code.co_name}\n')
        frame = frame.f_back  # type: ignore[assignment]
    return "".join(lines)

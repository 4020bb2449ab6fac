"""Ends that Python does not see coming: a crash in native code, ``os._exit`` and ``os.exec*``.

Before the latter two, what was recorded is written out. A crash and ``os._exit`` print no traceback, so where the
program was goes into a file of this process in ``GNNTOP_ANSWERS``, never into the program's own output: ``gnntop run``
reads it to say why the program died. Whatever hangs, the program waits for it a bounded time.
"""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any

from . import _answers
from ._answers import in_time
from ._environment import variable
from ._signals import is_the_programs

_MAX_FRAMES = 32
_watched = 0
"""The process that is watched, 0 for none; a child that it forks is not."""
_path = b""
"""Where its end is written."""


Maker = Callable[[int, Any, Callable[..., None], Any], Any]
"""Makes a built-in function of a module's, which calls another one with its arguments first."""


def watch(open_high: Callable[[bytes], int], flush: Callable[[], int], make: Maker | None) -> None:
    """Watches this process from now on. Raises nothing of its own.

    ``open_high`` opens a file to add to it under a high number, or gives -1: the fault handler writes into its number
    whatever that is by then, so it must be one that a program that closes all descriptors does not get for a file of
    its own. ``flush`` writes out what was recorded, in a second at most, and says whether it has: after these ends
    nothing else can. ``make`` makes the functions of the latter two; None where there are none.
    """
    global _path, _watched
    directory = variable("GNNTOP_ANSWERS")
    if not directory or _watched == os.getpid():
        return
    is_wrapped = _watched != 0  # before a fork
    _watched = os.getpid()
    _path = os.fsencode(os.path.join(directory, f"{_watched}.end"))
    try:
        if not is_wrapped and make is not None:
            _wrap_exit(flush, make)
            _wrap_exec(flush, make)
        # A program that has turned it on prints where it was, and wants to go on doing so.
        if not faulthandler.is_enabled():
            file = in_time(lambda: open_high(_path))
            if file >= 0:
                faulthandler.enable(file=file, all_threads=False)
    except Exception as error:
        if is_the_programs(error):
            raise


def close_in_child(close: Callable[[], None]) -> None:
    """Closes the session at the end of a process of multiprocessing's: it ends by ``os._exit``, without ``atexit``."""
    process, util = (sys.modules.get(f"multiprocessing.{name}") for name in ("process", "util"))
    if process is not None and util is not None and process.parent_process() is not None:
        util.Finalize(None, close, exitpriority=-100)


def _wrap_exit(flush: Callable[[], int], make: Maker) -> None:
    def _exit(status: int) -> None:
        if os.getpid() == _watched and isinstance(status, int) and -(1 << 31) <= status < 1 << 31:
            flush()
            text = f"os._exit\n{_caller()}".encode("utf-8", "replace")
            in_time(lambda: _answers.append(_path, text))

    _put_in_place(make, 0, _exit, os._exit)


def _wrap_exec(flush: Callable[[], int], make: Maker) -> None:
    """Has ``execv`` and ``execve`` flush, through which all others go."""
    can_flush = True

    def execute(*_: Any, **__: Any) -> None:
        nonlocal can_flush
        # Not again if it has taken too long: a search along PATH comes here once for each folder.
        if can_flush and os.getpid() == _watched:
            can_flush = bool(flush())

    _put_in_place(make, 1, execute, os.execv)
    _put_in_place(make, 2, execute, os.execve)


def _put_in_place(make: Maker, which: int, before: Callable[..., None], end: Callable[..., Any]) -> None:
    """Where the function is a built-in one: another was put there by the program."""
    module = sys.modules.get(end.__module__)
    if type(end) is not BuiltinFunctionType or module is None:
        return
    name, ours = end.__name__, make(which, module, before, end)
    if end in os.supports_fd:
        os.supports_fd.add(ours)
    for place in (os, module):  # the latter is where pickle looks
        if getattr(place, name, None) is end:
            setattr(place, name, ours)


def _caller() -> str:
    """The frames outside this file, innermost first, as the fault handler writes them."""
    lines: list[str] = []
    frame = sys._getframe(2)
    while frame is not None and len(lines) < _MAX_FRAMES:
        code = frame.f_code
        lines.append(f'  File "{code.co_filename}", line {frame.f_lineno} in {code.co_name}\n')
        frame = frame.f_back  # type: ignore[assignment]
    return "".join(lines)

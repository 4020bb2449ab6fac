"""Where a program was when it crashed in native code or called ``os._exit``: neither prints a traceback.

``gnntop run`` reads it to say why the program died. Written into a file of this process in ``GNNTOP_ANSWERS``, never
into the program's own output.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn

_MAX_FRAMES = 32
_watched = 0
"""The process that is watched; a child that it forks is not."""


def watch(high: Callable[[int], int], flush: Callable[[], int]) -> None:
    """Watches this process from now on. Never raises.

    ``high`` gives a descriptor another number, or -1: the fault handler writes into its number whatever that is by
    then, so it must be one that a program that closes all descriptors does not get for a file of its own. ``flush``
    writes out what was recorded, in a second at most: after ``os._exit`` nothing else can.
    """
    global _watched
    directory = os.environ.get("GNNTOP_ANSWERS")
    if not directory or _watched == os.getpid():
        return
    _watched = os.getpid()
    try:
        import faulthandler

        path = os.path.join(directory, f"{_watched}.end")
        # A program that has turned it on prints where it was, and wants to go on doing so.
        if not faulthandler.is_enabled():
            low = _open(path)
            file = high(low)
            os.close(low)
            if file >= 0:
                faulthandler.enable(file=file, all_threads=False)
        _watch_exit(path, flush)
    except Exception:
        pass


def _open(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def _watch_exit(path: str, flush: Callable[[], int]) -> None:
    end = os._exit

    def _exit(status: int) -> NoReturn:
        try:
            if os.getpid() == _watched:
                flush()
                os.write(_open(path), f"os._exit\n{_caller()}".encode("utf-8", "replace"))
        finally:
            end(status)

    _exit.__doc__ = end.__doc__
    os._exit = _exit


def _caller() -> str:
    """The frames outside this file, innermost first, as the fault handler writes them."""
    lines: list[str] = []
    frame = sys._getframe(2)
    while frame is not None and len(lines) < _MAX_FRAMES:
        code = frame.f_code
        lines.append(f'  File "{code.co_filename}", line {frame.f_lineno} in {code.co_name}\n')
        frame = frame.f_back  # type: ignore[assignment]
    return "".join(lines)

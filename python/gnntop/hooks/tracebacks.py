"""Tracebacks of the program without our frames: a failing program prints the same as without gnntop."""

from __future__ import annotations

import os
import sys
from types import CodeType, TracebackType
from typing import Any

from .. import _endings
from .patching import on_uninstall

_OURS = (os.path.dirname(__file__), _endings.__file__)


def install() -> None:
    """Cleans uncaught exceptions before anything prints them."""
    printing = sys.excepthook

    def excepthook(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
        try:
            clean(value)
            traceback = value.__traceback__
        except Exception:
            pass  # then our frames show
        printing(kind, value, traceback)

    sys.excepthook = excepthook
    on_uninstall.append(lambda: _give_back(excepthook, printing))


def _give_back(ours: Any, theirs: Any) -> None:
    if sys.excepthook is ours:
        sys.excepthook = theirs


def clean(error: BaseException) -> None:
    """Removes our frames from the tracebacks of an exception and of those that led to it."""
    seen: set[int] = set()
    errors: list[BaseException | None] = [error]
    while errors:
        one = errors.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = _without_ours(one.__traceback__)
        errors += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    kept: TracebackType | None = None
    is_below_ours = False
    for one in reversed(frames):
        code = one.tb_frame.f_code
        if code.co_filename.startswith(_OURS):
            is_below_ours = True
            continue
        if is_below_ours and code.co_filename.startswith("<frozen importlib"):
            continue  # Python leaves these out if no frame is between them and the module
        place, line = one.tb_lasti, one.tb_lineno
        if code.co_name == "_wrapped_call_impl" and _is_hooked(one.tb_frame.f_locals.get("self")):
            place, line = _last_call(code, place, line)
        kept = TracebackType(kept, one.tb_frame, place, line)
        is_below_ours = False
    return kept


def _is_hooked(module: Any) -> bool:
    roots = sys.modules.get(f"{__package__}.roots")
    return roots is not None and module is not None and bool(roots.is_hooked(module))


def _last_call(code: CodeType, place: int, line: int) -> tuple[int, int]:
    """Instruction and line of the function's last line, where ``nn.Module`` calls what has no hooked root."""
    lines = [(at, number) for at, _, number in code.co_lines() if number is not None]
    last = max(number for _, number in lines)
    if not hasattr(code, "co_positions"):
        return (max(at for at, number in lines if number == last), last)
    there = [
        (end_column - column, -column, 2 * index)
        for index, (number, end, column, end_column) in enumerate(code.co_positions())
        if number == last == end and column is not None and end_column is not None
    ]
    # The whole line is the return; the widest within it is the call.
    start = max((minus_column for _, minus_column, _ in there), default=0)
    calls = [(width, at) for width, minus_column, at in there if minus_column < start]
    return (max(calls)[1], last) if calls else (place, line)

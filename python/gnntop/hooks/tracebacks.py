"""Tracebacks of the program without our frames: a failing program prints the same as without gnntop."""

from __future__ import annotations

import builtins
import os
import sys
from types import TracebackType
from typing import Any

from .. import _endings
from .patching import UNCOUNTED, on_uninstall

_OURS = (os.path.dirname(__file__), _endings.__file__, UNCOUNTED)
_MOST_ERRORS = 1000
# What every exception has, also if its class has something else of that name, whose code is the program's.
_traceback, _cause, _context = (vars(BaseException)[name] for name in ("__traceback__", "__cause__", "__context__"))
_Group: Any = getattr(builtins, "BaseExceptionGroup", None)  # new in Python 3.11


def install() -> None:
    """Cleans uncaught exceptions before anything prints them."""
    printing, original = sys.excepthook, sys.__excepthook__

    def excepthook(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
        try:
            clean(value)
            traceback = _traceback.__get__(value)
        except Exception:
            pass  # then our frames show
        printing(kind, value, traceback)

    sys.excepthook = excepthook
    if printing is original:  # programs compare the two, to learn whether one has been set
        sys.__excepthook__ = excepthook
    on_uninstall.append(lambda: _give_back(excepthook, printing, original))


def _give_back(ours: Any, theirs: Any, original: Any) -> None:
    if sys.excepthook is ours:
        sys.excepthook = theirs
    if sys.__excepthook__ is ours:
        sys.__excepthook__ = original


def clean(error: BaseException) -> None:
    """Removes our frames from the tracebacks of an exception and of those that led to it."""
    seen: set[int] = set()
    errors: list[BaseException | None] = [error]
    while errors and len(seen) < _MOST_ERRORS:
        one = errors.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        _traceback.__set__(one, _without_ours(_traceback.__get__(one)))
        errors += [_cause.__get__(one), _context.__get__(one)]
        if _Group is not None and issubclass(type(one), _Group):
            errors += vars(_Group)["exceptions"].__get__(one)


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
        kept = TracebackType(kept, one.tb_frame, one.tb_lasti, one.tb_lineno)
        is_below_ours = False
    return kept

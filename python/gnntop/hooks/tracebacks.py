"""Tracebacks of the program without our frames: a failing program prints the same as without gnntop."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Any

from .. import _endings
from .patching import on_uninstall

_OURS = (os.path.dirname(__file__), _endings.__file__)


def install() -> None:
    """Cleans uncaught exceptions before anything prints them."""
    printing, original = sys.excepthook, sys.__excepthook__

    def excepthook(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
        try:
            clean(value)
            traceback = value.__traceback__
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
        kept = TracebackType(kept, one.tb_frame, one.tb_lasti, one.tb_lineno)
        is_below_ours = False
    return kept

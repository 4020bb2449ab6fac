"""torch.compile: the time in which Dynamo and its backends compile, which function, and why again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from .. import _native
from .patching import UNCOUNTED, guarded, on_uninstall, patch

_tokens: list[int] = []

_LIBRARIES = ("site-packages/", "dist-packages/", "/lib/python3", "/gnntop/hooks/", UNCOUNTED)
# The frame of Dynamo that compiles a function knows its code; the callback is called a few frames inside of it.
_COMPILES = ("compile_inner", "_compile")
_MOST_FRAMES = 12
# A backward pass is compiled later than its function, by the same number.
_functions: dict[str, str] = {}
_MOST_FUNCTIONS = 256
# Longest reason: a name is cut, too, and the place must remain.
_LONGEST_REASON = 120


def install(callback: ModuleType) -> None:
    """Registers with ``torch._dynamo.callback``; nested compilations are reported as one."""
    handler = callback.callback_handler
    begin, end = guarded("compile", _begin), guarded("compile", _end)

    def register(*_: object) -> None:
        handler.register_start_callback(begin)
        handler.register_end_callback(end)

    def remove() -> None:
        handler.start_callbacks.remove(begin)
        handler.end_callbacks.remove(end)

    register()
    on_uninstall.append(remove)
    patch(type(handler), "clear", lambda _: True, register)  # by torch._dynamo.reset()


def install_skips(eval_frame: ModuleType) -> None:
    """Keeps Dynamo from compiling our functions by themselves when it meets them between two graphs.

    The compiled function would be a hook that does nothing: see `patching.is_compiling`.
    """
    skip: Callable[[CodeType], None] = eval_frame.skip_code
    package = __package__.partition(".")[0]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package:
            for value in list(vars(module).values()):
                for function in list(vars(value).values()) if isinstance(value, type) else [value]:
                    if isinstance(function, FunctionType):
                        _skip_with_inner(function.__code__, skip)


def _skip_with_inner(code: CodeType, skip: Callable[[CodeType], None]) -> None:
    skip(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _skip_with_inner(constant, skip)


def _begin(compilation: Any = None) -> None:
    """Begins the phase, and in it a span that says which function is compiled; older torch passes nothing."""
    token = _native.work_begin(_native.COMPILE)
    if token is not None:
        _tokens.append(token)
        span = _span(str(getattr(compilation, "compile_id", "")))
        if span > 0:
            _native.begin(span)


def _end(_: object = None) -> None:
    if _tokens and _native.is_here():
        _native.work_end(_native.COMPILE, _tokens.pop())


def _span(number: str) -> int:
    """The name of the span for the compilation with this number, such as ``0/1``: 1 for the second time."""
    code = _compiled(sys._getframe(1))
    if code is not None:
        if len(_functions) >= _MOST_FUNCTIONS:
            _functions.clear()
        _functions[number] = _place(code, sys._getframe(1))
    place = _functions.get(number)
    if place is None:
        return 0
    what = place if code is not None else f"backward of {place}"
    if number.rpartition("/")[2].partition("_")[0] in ("", "0"):
        return _native.span_name(f"compile {what}")
    reason = "" if code is None else _reason(code)
    return _native.reported_name(f"compile again: {what}{reason}")


def _compiled(frame: FrameType | None) -> CodeType | None:
    """The code that Dynamo compiles, as one of the calling frames knows it."""
    for _ in range(_MOST_FRAMES):
        if frame is None:
            break
        if frame.f_code.co_name in _COMPILES:
            code = frame.f_locals.get("code")
            if isinstance(code, CodeType):
                return code
        frame = frame.f_back
    return None


def _place(code: CodeType, frame: FrameType | None) -> str:
    """The function, or the line that calls it where it is one of torch's, as for a compiled module."""
    line = code.co_firstlineno
    while _is_of_library(code) and frame is not None:
        if not _is_of_library(frame.f_code):
            code, line = frame.f_code, frame.f_lineno
        frame = frame.f_back
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]
    return f"{name} ({os.path.basename(code.co_filename)}:{line})"


def _is_of_library(code: CodeType) -> bool:
    return any(folder in code.co_filename for folder in _LIBRARIES)


def _reason(code: CodeType) -> str:
    """Why what was compiled before does not do, in the words of torch: the guard that failed last."""
    failures = getattr(sys.modules.get("torch._dynamo.utils"), "guard_failures", {}).get(code)
    if not failures:
        return ""
    text = str(failures[-1]).partition("\n")[0]
    number, colon, reason = text.partition(": ")
    reason = reason if colon and "/" in number else text
    return f": {reason[:_LONGEST_REASON]}"

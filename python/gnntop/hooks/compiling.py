"""torch.compile: the time in which Dynamo and its backends compile, which explains a slow start."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType

from .. import _native
from .patching import guarded

_tokens: list[int] = []


def install(callback: ModuleType) -> None:
    """Registers with ``torch._dynamo.callback``; nested compilations are reported as one."""
    callback.callback_handler.register_start_callback(guarded("compile", _begin))
    callback.callback_handler.register_end_callback(guarded("compile", _end))


def install_skips(eval_frame: ModuleType) -> None:
    """Keeps Dynamo from compiling our functions by themselves when it meets them between two graphs.

    The compiled function would be a hook that does nothing: see `patching.is_compiling`.
    """
    skip: Callable[[CodeType], None] = eval_frame.skip_code
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{__package__}."):
            for value in list(vars(module).values()):
                for function in list(vars(value).values()) if isinstance(value, type) else [value]:
                    if isinstance(function, FunctionType):
                        _skip_with_inner(function.__code__, skip)


def _skip_with_inner(code: CodeType, skip: Callable[[CodeType], None]) -> None:
    skip(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _skip_with_inner(constant, skip)


def _begin(_: object) -> None:
    token = _native.work_begin(_native.COMPILE)
    if token is not None:
        _tokens.append(token)


def _end(_: object) -> None:
    if _tokens and _native.is_here():
        _native.work_end(_native.COMPILE, _tokens.pop())

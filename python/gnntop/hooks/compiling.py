"""torch.compile: the time in which Dynamo and its backends compile, which explains a slow start."""

from __future__ import annotations

from types import ModuleType

from gnntop import _native
from gnntop.hooks.loop import loop
from gnntop.hooks.patching import guarded

_depths: list[int] = []


def install(callback: ModuleType) -> None:
    """Registers with ``torch._dynamo.callback``; compilations that nest are told as one."""
    callback.callback_handler.register_start_callback(guarded("compile", _begin))
    callback.callback_handler.register_end_callback(guarded("compile", _end))


def _begin(_: object) -> None:
    depth = loop.pause_begin(loop.names.compile) if loop.is_here() else None
    if depth is not None:
        _depths.append(depth)


def _end(_: object) -> None:
    if _depths and loop.is_here():
        _native.end_to(_depths.pop())

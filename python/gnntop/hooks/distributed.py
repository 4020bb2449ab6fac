"""torch.distributed: the wait for other ranks.

In a backward pass of DistributedDataParallel gradients are sent while others are still computed. What is seen as
all-reduce is what is not hidden so: from the last that was sent until backward returns. That holds where the training
thread itself waits, as with gloo; a GPU's collectives are waited for by its stream.
"""

from __future__ import annotations

import atexit
import contextlib
from types import ModuleType
from typing import Any

from .. import _native
from . import loop
from .patching import Before, patch
from .phases import COLLECTIVE

# Our hook among others of a process group, which are distinguished by numbers.
_HOOK_ID = 0x676E6E746F70
_COLLECTIVES = (
    "all_reduce",
    "reduce",
    "all_gather",
    "all_gather_into_tensor",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "all_to_all",
    "all_to_all_single",
    "gather",
    "scatter",
)
# What a hang names: a rank that waits in one of these was told to by a line of its own.
_NAMED = {"barrier": "barrier", "monitored_barrier": "barrier", "broadcast": "broadcast"}


def install(distributed: ModuleType) -> None:
    """Hooks ``torch.distributed``."""
    for name in _COLLECTIVES:
        patch(distributed, name, *COLLECTIVE)
    _, after = COLLECTIVE
    for name, shown in _NAMED.items():
        patch(distributed, name, _before(_native.reported_name(shown)), after)
    loop.on_open.append(lambda: _hook_world(distributed))


def _before(span: int) -> Before:
    def before(_: tuple[Any, ...]) -> int | None:
        token = _native.work_begin(_native.COLLECTIVE)
        if token is not None:
            _native.begin(span)
        return token

    return before


def _hook_world(distributed: ModuleType) -> None:
    """From torch 2.14 on a group tells when something is sent, which is how the reducer's work is seen."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return
    world: Any = distributed.group.WORLD
    if distributed.get_backend() == "gloo" and hasattr(world, "register_pre_hook"):
        world.register_pre_hook(_HOOK_ID, _native.sending)
        _native.switch(_native.HAS_PEERS, 1)
        atexit.register(_release_world, distributed)


def _release_world(distributed: ModuleType) -> None:
    """Takes the hook away before Python ends.

    A group that the program does not destroy is destroyed by the process's last destructors. The hook is a Python
    object, whose destructor would take a lock of Python's that no longer exists, and the process would crash.
    """
    with contextlib.suppress(Exception):
        if distributed.is_initialized():
            world: Any = distributed.group.WORLD
            world.unregister_pre_hook(_HOOK_ID)

"""``torch.utils.data``: the wait for a batch, and how many batches lie ready."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from gnntop import _native
from gnntop.hooks import workers
from gnntop.hooks.loop import loop
from gnntop.hooks.patching import patch

_READY = "batches ready"


def install(dataloader: ModuleType) -> None:
    """Hooks ``torch.utils.data.dataloader``."""
    patch(dataloader._BaseDataLoaderIter, "__next__", _before, _after)
    workers.install(dataloader)


# The iterator that is asked, where it has workers. The loop asks one at a time.
_asked: Any = None


def _before(args: tuple[Any, ...]) -> int | None:
    global _asked
    depth = loop.fetch_begin()
    if depth is not None:
        _asked = args[0] if args[0]._num_workers else None
    return depth


def _after(depth: int, batch: object) -> None:
    global _asked
    loop.fetch_end(depth, batch)
    if _asked is not None:
        _native.counter_int(_native.counter_name(_READY), _ready(_asked))
        _asked = None


def _ready(iterator: Any) -> int:
    """Batches that workers have finished and the loop has not taken: in the queue, or out of their order."""
    waiting = sum(1 for task in iterator._task_info.values() if len(task) == 2)
    try:
        return int(iterator._data_queue.qsize()) + waiting
    except (NotImplementedError, OSError):  # no such count on this system
        return waiting

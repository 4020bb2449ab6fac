"""``torch.utils.data``: the wait for a batch, what makes one, and the number of batches ready."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .. import _native
from . import fetching, workers
from .patching import patch, watch

_READY = "batches ready"


def install(dataloader: ModuleType) -> None:
    """Hooks ``torch.utils.data.dataloader``."""
    watch(dataloader._BaseDataLoaderIter, "__next__", _native.FETCH)
    patch(dataloader._MultiProcessingDataLoaderIter, "_next_data", _asked, _count)
    workers.install(dataloader)
    fetching.install(dataloader._utils.fetch)


def _asked(args: tuple[Any, ...]) -> Any:
    """The iterator, when the training loop asks it."""
    return args[0] if _native.is_here() else None


def _count(iterator: Any, _: object) -> None:
    _native.counter_int(_native.counter_name(_READY), _ready(iterator))


def _ready(iterator: Any) -> int:
    """Batches that workers have finished and the loop has not taken: in the queue, or out of order."""
    waiting = sum(1 for task in iterator._task_info.values() if len(task) == 2)
    try:
        return int(iterator._data_queue.qsize()) + waiting
    except (NotImplementedError, OSError):  # no such count on this system
        return waiting

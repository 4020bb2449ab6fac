"""Loader workers, as tracks of the training session: what each fetches, and the number of batches ready.

Before a worker starts, its parent makes a ring for it. The ring's address travels in the ``worker_init_fn``, which
reaches workers by fork, spawn and forkserver alike; the program's own is called from it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from .. import _native
from . import fetching
from .patching import Hook, patch, watch

_hook = Hook("loader workers")
_loaders = 0


def install(dataloader: ModuleType) -> None:
    """Hooks the start of workers in ``torch.utils.data.dataloader``."""
    patch(dataloader._MultiProcessingDataLoaderIter, "__init__", _before_start, _after_start)


def _before_start(args: tuple[Any, ...]) -> tuple[Any, Any, Any] | None:
    global _loaders
    if _native.is_elsewhere() or not _native.available:
        return None
    iterator, loader = args[0], args[1]
    _loaders += 1
    rings = [_native.worker_ring(f"loader {_loaders} worker {worker}") for worker in range(loader.num_workers)]
    made = [ring for ring in rings if ring is not None]
    if not made:
        return None
    for handle, _ in made:
        _native.close_ring_with(iterator, handle)
    original = loader.worker_init_fn
    addresses = [ring[1] if ring else "" for ring in rings]
    loader.worker_init_fn = Start(addresses, original)
    return loader, original, iterator


def _after_start(token: tuple[Any, Any, Any], _: object) -> None:
    loader, original, _iterator = token
    loader.worker_init_fn = original


class Start:
    """What a worker calls first: records its fetches, then runs the program's own ``worker_init_fn``."""

    def __init__(self, addresses: list[str], original: Callable[[int], None] | None) -> None:
        self.addresses = addresses
        self.original = original

    def __call__(self, worker: int) -> None:
        """In the worker with this number."""
        try:
            _record(self.addresses[worker])
        except BaseException as error:
            _hook.failed(error)
        if self.original is not None:
            self.original(worker)

    def __reduce__(self) -> tuple[Any, ...]:
        """For a worker that is not forked."""
        package = _native.__name__.partition(".")[0]
        if package == "gnntop":  # installed: the worker can import it
            return Start, (self.addresses, self.original)
        # A worker without our hooks, as one started with other variables, knows no module of ours.
        known = {"name": f"{package}._bootstrap", "addresses": self.addresses, "original": self.original}
        return eval, (_RESTORED, known)


_RESTORED = """(lambda module: module.restored(addresses, original) if module else original)(
    __import__("sys").modules.get(name))"""


def _record(address: str) -> None:
    _native.switch(_native.IS_ELSEWHERE, 1)
    if address and _native.worker_attach(address):
        _hook_fetchers(_native.phase("fetch"))


def _hook_fetchers(name: int) -> None:
    from torch.utils.data._utils import fetch

    fetching.install(fetch)
    for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        watch(kind, "fetch", _native.OF_ROOTS - name)

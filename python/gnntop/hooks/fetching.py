"""A dataset's fetch, on the training thread or in a worker: what puts the items together is a span, ``collate``.

The rest of a fetch makes the items. The fetcher has its own function at all other times: programs compare it.
"""

from __future__ import annotations

from types import ModuleType

from .. import _native
from .patching import on_uninstall, watch

_is_hooked = False


def install(fetch: ModuleType) -> None:
    """Hooks ``torch.utils.data._utils.fetch``, once: a forked worker has its parent's hooks."""
    global _is_hooked
    if not _is_hooked:
        _is_hooked = True
        on_uninstall.append(_forget)
        for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
            watch(kind, "fetch", _native.OF_FETCHER, _native.reported_name("collate"))


def _forget() -> None:
    global _is_hooked
    _is_hooked = False

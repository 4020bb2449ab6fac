"""A dataset's fetch, on the training thread or in a worker: what puts the items together is a span, ``collate``.

The rest of a fetch makes the items.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .. import _native
from .patching import on_uninstall, patch

_is_hooked = False


def install(fetch: ModuleType) -> None:
    """Hooks ``torch.utils.data._utils.fetch``, once: a forked worker has its parent's hooks."""
    global _is_hooked
    if not _is_hooked:
        _is_hooked = True
        on_uninstall.append(_forget)
        patch(fetch._BaseDatasetFetcher, "__init__", _fetcher, _watch_collate)


def _forget() -> None:
    global _is_hooked
    _is_hooked = False


def _fetcher(args: tuple[Any, ...]) -> Any:
    return args[0]


def _watch_collate(fetcher: Any, _: object) -> None:
    if hasattr(fetcher, "collate_fn"):  # else it has raised
        collate = _native.OF_ROOTS - _native.reported_name("collate")
        fetcher.collate_fn = _native.Hooked(fetcher.collate_fn, collate, None)

"""DGL: sampling and prefetching of its loader, transfers, and the sizes of its graphs."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .. import _native
from .batches import Shape, read_with
from .patching import patch, watch
from .phases import TRANSFER


def install_loader(dataloader: ModuleType) -> None:
    """Hooks ``dgl.dataloading.dataloader``."""
    patch(dataloader._PrefetchingIter, "__next__", _before_fetch, _after_fetch)
    watch(dataloader.CollateWrapper, "__call__", _native.SAMPLE)
    watch(dataloader, "_prefetch", _native.GATHER)


def install_graph(graph: ModuleType) -> None:
    """Hooks ``dgl.heterograph``."""
    patch(graph.DGLGraph, "to", *TRANSFER)
    read_with(graph.DGLGraph, _shape)


def _before_fetch(_: tuple[Any, ...]) -> int | None:
    return _native.work_begin(_native.FETCH)


def _after_fetch(token: int, batch: object) -> None:
    # Sampled blocks come as input nodes, output nodes and blocks: the first block holds everything to gather.
    is_sampled = type(batch) is tuple and len(batch) == 3 and type(batch[2]) is list
    _native.fetch_end(token, batch[2] if is_sampled else batch)  # type: ignore[index]


def _shape(graph: Any) -> Shape:
    if type(graph).__module__ != "dgl.heterograph":
        return ()  # a class of the program's, with methods of its own
    graphs = graph.batch_size if not graph.is_block else -1
    return graph.num_nodes(), graph.num_edges(), graphs, -1, -1

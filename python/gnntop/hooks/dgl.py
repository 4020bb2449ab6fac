"""DGL: sampling and prefetching of its loader, transfers, and the sizes of its graphs."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from gnntop.hooks.batches import Shape, read_with
from gnntop.hooks.loop import loop
from gnntop.hooks.patching import patch


def install_loader(dataloader: ModuleType) -> None:
    """Hooks ``dgl.dataloading.dataloader``."""
    patch(dataloader._PrefetchingIter, "__next__", _before_fetch, _after_fetch)
    patch(dataloader.CollateWrapper, "__call__", _before_sample, _after)
    patch(dataloader, "_prefetch", _before_gather, _after)


def install_graph(graph: ModuleType) -> None:
    """Hooks ``dgl.heterograph``."""
    patch(graph.DGLGraph, "to", _before_transfer, _after_transfer)
    read_with(graph.DGLGraph, _shape)


def _before_fetch(_: tuple[Any, ...]) -> int | None:
    return loop.fetch_begin()


def _after_fetch(depth: int, batch: object) -> None:
    # Sampled blocks come as input nodes, output nodes and blocks: the first block holds all there is to gather.
    is_sampled = isinstance(batch, tuple) and len(batch) == 3 and isinstance(batch[2], list)
    loop.fetch_end(depth, batch[2] if is_sampled else batch)  # type: ignore[index]


def _before_sample(_: tuple[Any, ...]) -> int | None:
    return loop.loading_begin("sample")


def _before_gather(_: tuple[Any, ...]) -> int | None:
    return loop.loading_begin("gather")


def _after(depth: int, _: object) -> None:
    loop.loading_end(depth)


def _before_transfer(_: tuple[Any, ...]) -> int | None:
    return loop.transfer_begin()


def _after_transfer(depth: int, _: object) -> None:
    loop.transfer_end(depth)


def _shape(graph: Any) -> Shape:
    graphs = graph.batch_size if not graph.is_block else -1
    return graph.num_nodes(), graph.num_edges(), graphs, -1, -1

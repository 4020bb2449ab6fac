"""PyTorch Geometric: sampling and gathering of its loaders, transfers, and the sizes of its batches."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .. import _native
from .batches import Shape, read_with
from .patching import defining, patch, watch
from .phases import TRANSFER


def install_loader(loader: ModuleType) -> None:
    """Hooks ``torch_geometric.loader``: `collate_fn` samples, `filter_fn` gathers the sampled features."""
    for name in ("NodeLoader", "LinkLoader"):
        kind = getattr(loader, name, None)
        if kind is not None:
            watch(kind, "collate_fn", _native.SAMPLE)
            watch(kind, "filter_fn", _native.GATHER)


def install_data(data: ModuleType) -> None:
    """Hooks ``torch_geometric.data``."""
    kinds = [data.Data, data.HeteroData]
    for kind in kinds:
        read_with(kind, _shape)
    for kind in {defining(kind, "to") for kind in kinds}:
        patch(kind, "to", *TRANSFER)


def _shape(batch: Any) -> Shape:
    """Nodes, edges, graphs and seeds of a batch, by the shapes of its tensors; all types of a heterogeneous one."""
    stores = _stores(_native.fields(batch))
    nodes = edges = seeds = graphs = 0
    for store in stores:
        nodes += _length(store, ("x", "n_id", "batch", "pos", "z"), 0)
        edges += _length(store, ("edge_index", "edge_attr"), -1)
        seeds += _seeds(store)
        graphs = max(graphs, _length(store, ("ptr",), 0) - 1)  # where each graph's nodes begin, and the end
    return nodes or -1, edges or -1, graphs or -1, seeds or -1, -1


def _stores(known: dict[str, Any]) -> list[dict[str, Any]]:
    if "_store" in known:
        stores = [known["_store"]]
    else:
        kinds = (known.get("_node_store_dict"), known.get("_edge_store_dict"))
        stores = [store for kind in kinds if type(kind) is dict for store in kind.values()]
    mappings = (_native.fields(store).get("_mapping") for store in stores)
    return [mapping for mapping in mappings if type(mapping) is dict]


def _length(store: dict[str, Any], names: tuple[str, ...], dimension: int) -> int:
    """The size of the first of these that exists; -1 is the last dimension of an edge index, else the first."""
    for name in names:
        shape = _native.shape(store.get(name))
        if shape:
            return int(shape[-1] if dimension == -1 and name == "edge_index" else shape[0])
    return 0


def _seeds(store: dict[str, Any]) -> int:
    seeds = store.get("batch_size")
    return seeds if type(seeds) is int else 0

"""How large a batch is, read from shapes alone: nothing is computed, and no device is waited for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Shape = tuple[int, ...]
"""Nodes, edges, graphs, seeds, samples, as `gnntop_batch` takes them; -1 for what is not known. Empty: nothing is."""

_readers: dict[type, Callable[[Any], Shape]] = {}


def shape_of(batch: object) -> Shape:
    """The size of a batch, as far as it can be told."""
    read = _readers.get(type(batch))
    if read is None:
        read = _readers[type(batch)] = _reader_for(type(batch))
    return read(batch)


def read_with(batches: type, read: Callable[[Any], Shape]) -> None:
    """Has batches of this type, and of types derived from it, read by `read`."""
    _by_base.insert(0, (batches, read))
    _readers.clear()


def _reader_for(batches: type) -> Callable[[Any], Shape]:
    for base, read in _by_base:
        if issubclass(batches, base):
            return read
    return _of_tensor if hasattr(batches, "shape") and hasattr(batches, "dim") else _unknown


def _unknown(_: object) -> Shape:
    return ()


def _of_tensor(batch: Any) -> Shape:
    """Samples are a tensor's first dimension."""
    shape = batch.shape
    return (-1, -1, -1, -1, shape[0]) if shape else ()


def _of_sequence(batch: Any) -> Shape:
    """Of a list of tensors, or of lists, what is known of the first."""
    return shape_of(batch[0]) if batch else ()


def _of_mapping(batch: Any) -> Shape:
    """Of a dictionary of tensors, what is known of the first value of which anything is."""
    for value in batch.values():
        shape = shape_of(value)
        if shape:
            return shape
    return ()


_by_base: list[tuple[type, Callable[[Any], Shape]]] = [(dict, _of_mapping), (list, _of_sequence), (tuple, _of_sequence)]

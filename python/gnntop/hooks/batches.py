"""The size of a batch, read only from shapes: nothing is computed, and no device is waited for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Shape = tuple[int, ...]
"""Nodes, edges, graphs, seeds, samples, as `gnntop_batch` takes them; -1 if unknown. Empty: all unknown."""

_readers: dict[type, Callable[[Any], Shape]] = {}


def shape_of(batch: object) -> Shape:
    """The size of a batch, as far as known."""
    read = _readers.get(type(batch))
    if read is None:
        read = _readers[type(batch)] = _reader_for(type(batch))
    return read(batch)


def read_with(batches: type, read: Callable[[Any], Shape]) -> None:
    """Makes `read` read batches of this type and of types derived from it."""
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
    """For a list of tensors, or of lists, the size of the first."""
    return shape_of(batch[0]) if batch else ()


def _of_mapping(batch: Any) -> Shape:
    """For a dictionary of tensors, the size of the first value whose size is known."""
    for value in batch.values():
        shape = shape_of(value)
        if shape:
            return shape
    return ()


_by_base: list[tuple[type, Callable[[Any], Shape]]] = [(dict, _of_mapping), (list, _of_sequence), (tuple, _of_sequence)]

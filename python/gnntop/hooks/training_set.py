"""What the loaders are made with: how many workers, and how large the training set is, so that ranks are noticed that
each go through all of it.

Only where it is plain: all loaders that exist when the roots are searched for have as many workers, or the same data,
of a type of torch's or a list, whose length is known without running any of the program's code.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from functools import reduce
from typing import Any

from .. import _native


class Loader:
    """What is remembered of a `DataLoader`, or of what iterates over one that is gone; it keeps neither alive."""

    def __init__(self, fields: dict[str, Any]) -> None:
        def known(name: str) -> Any:
            return fields.get(name, fields.get(f"_{name}"))

        data = known("dataset")
        self.data = id(data)
        self.length = _length(data)
        self.content = _content(data)
        self.pins_memory = known("pin_memory")
        self.workers = known("num_workers")


def publish(loaders: list[Loader]) -> None:
    """Reports the length of the data of these loaders, and a number that is another one for other data."""
    if len({loader.data for loader in loaders}) == 1 and loaders[0].length is not None:
        _native.mark_value(_native.reported_name("training set"), float(loaders[0].length))
        if loaders[0].content is not None:
            _native.mark_value(_native.reported_name("training data"), float(loaders[0].content))


def publish_workers(loaders: list[Loader]) -> None:
    """Reports how many workers these loaders have."""
    workers = {loader.workers for loader in loaders if type(loader.workers) is int}
    if len(workers) == 1:
        _native.loader_workers(workers.pop())


def _length(data: Any) -> int | None:
    kind = type(data)
    if kind is list or kind is tuple:
        return len(data)
    types = sys.modules.get("torch.utils.data.dataset")
    fields = _native.fields(data) or {}
    if kind is getattr(types, "Subset", None):
        indices: Any = fields.get("indices")
        return len(indices) if type(indices) in (list, range) else None
    if kind is getattr(types, "TensorDataset", None):
        shape = _native.shape(next(iter(fields.get("tensors", ())), None))
        return shape[0] if shape else None
    return None


# Of each tensor, this many bytes at the begin, in the middle and at the end count.
_BYTES = 256
_MOST_FIELDS = 64
_SAFE = (int, float, str, bytes, bool, range)


def _content(data: Any) -> int | None:
    """A number that follows from some of the data; None where only the program's code can read them."""
    parts = list(_parts(data))
    known = [part for part in parts if part is not None]
    return _hash(b"|".join(known)) if known and len(known) == len(parts) else None


def _hash(data: bytes) -> int:
    """The same number in every process, which Python's own is not (FNV-1a). `zlib` may be a module of the program's."""
    return reduce(lambda found, byte: (found ^ byte) * 0x01000193 & 0xFFFFFFFF, data, 0x811C9DC5)


def _parts(data: Any) -> Iterator[bytes | None]:
    """Bytes of the data, None for what is not known."""
    torch, fields = sys.modules.get("torch"), _native.fields(data) or {}
    types = sys.modules.get("torch.utils.data.dataset")
    if type(data) in (list, tuple):
        for item in (data[0], data[len(data) // 2], data[-1]) if data else ():
            yield from _parts(item)
    elif type(data) in _SAFE:
        yield repr(data).encode()
    elif type(data) is dict and len(data) <= _MOST_FIELDS:
        yield from (part for value in list(data.values()) for part in _parts(value))
    elif type(data) is getattr(sys.modules.get("torch_geometric.data"), "Data", None):
        yield from _parts((_native.fields(fields.get("_store")) or {}).get("_mapping"))
    elif type(data) is getattr(types, "TensorDataset", None):
        yield from _parts(fields.get("tensors"))
    elif type(data) is getattr(types, "Subset", None):
        yield from _parts(fields.get("dataset"))
        yield from _parts(fields.get("indices"))
    elif torch is not None and type(data) is torch.Tensor and not torch._C._len_torch_function_stack():
        yield from _tensor(torch._C.TensorBase, data)
    else:
        yield None


def _tensor(base: Any, tensor: Any) -> Iterator[bytes | None]:
    if tensor.device.type != "cpu" or not base.is_contiguous(tensor) or tensor.is_sparse:
        yield None
        return
    size, begin = base.numel(tensor) * base.element_size(tensor), base.data_ptr(tensor)
    for at in (0, size // 2, max(size - _BYTES, 0)) if begin else ():
        yield ctypes.string_at(begin + at, min(_BYTES, size - at))

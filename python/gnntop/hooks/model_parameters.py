"""What the model's parameters are: the type of most, and how many are in embeddings that each step updates whole.

The gradient of an embedding has a row for each of its rows, of which a batch uses few, and the optimizer goes through
all of them in each step, unless it was made with ``sparse=True``. One whose weight another kind of module has as well,
such as a language model's output layer, needs such a gradient. Nothing runs any code of the modules and tensors.
"""

from __future__ import annotations

from functools import reduce
from operator import mul
from types import ModuleType
from typing import Any

from .. import _native
from . import reading, roots


def publish(torch: ModuleType) -> None:
    """Reports them of the root with the most parameters."""
    model = roots.model()
    if model is None or torch._C._len_torch_function_stack():
        return  # there is none, or the program would hear of it
    sizes: dict[str, int] = {}
    for parameter in reading.parameters(model):
        if size := _size(parameter):
            number_type = str(torch._C.TensorBase.dtype.__get__(parameter)).removeprefix("torch.")
            sizes[number_type] = sizes.get(number_type, 0) + size
    if sizes:
        embedded = _in_dense_embeddings(torch, model)
        _native.parameters(max(sizes, key=lambda name: sizes[name]), 100 * embedded // sum(sizes.values()))


def _size(parameter: Any) -> int:
    """How many numbers a tensor of torch's own types has."""
    shape: tuple[int, ...] | None = _native.shape(parameter)
    return 0 if shape is None else reduce(mul, shape, 1)


def _in_dense_embeddings(torch: ModuleType, model: Any) -> int:
    """Numbers in weights of embeddings that are trained and have dense gradients."""
    kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    dense: dict[int, int] = {}
    others: set[int] = set()
    for module in reading.modules_in(model):
        parameters = [parameter for parameter in reading.own_parameters(module) if _size(parameter)]
        if not reading.is_one_of(module, kinds):
            others.update(map(id, parameters))
        elif not (_native.fields(module) or {}).get("sparse"):
            trained = filter(torch._C.TensorBase.requires_grad.__get__, parameters)
            dense.update((id(parameter), _size(parameter)) for parameter in trained)
    return sum(size for parameter, size in dense.items() if parameter not in others)

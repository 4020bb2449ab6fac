"""What modules and optimizers hold, read without running any of their code, which may be the program's."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import reduce
from operator import mul
from typing import Any

from .. import _native


def size(module: Any) -> int:
    """How many numbers the parameters of a module have that are tensors of torch's own types."""
    shapes = (_native.shape(parameter) for parameter in parameters(module))
    return sum(reduce(mul, shape, 1) for shape in shapes if shape is not None)


def parameters(module: Any) -> Iterable[Any]:
    """The parameters of a module, each once."""
    return {id(parameter): parameter for one in modules_in(module) for parameter in own_parameters(one)}.values()


def modules_in(module: Any) -> Iterator[Any]:
    """A module and all that are in it, each once."""
    left, seen = [module], set()
    while left:
        one = left.pop()
        if id(one) not in seen:
            seen.add(id(one))
            left += children(one)
            yield one


def own_parameters(module: Any) -> Iterable[Any]:
    """The parameters of a module without those of the modules in it."""
    return _fields(module, "_parameters").values()


def children(module: Any) -> list[Any]:
    """The modules directly in a module."""
    return [child for child in _fields(module, "_modules").values() if child is not None]


def parameters_of(optimizer: Any) -> list[Any]:
    """The parameters that an optimizer updates; no code of the lists and dictionaries that hold them runs."""
    groups = _listed((_native.fields(optimizer) or {}).get("param_groups"))
    lists = [dict.get(group, "params") for group in groups if is_one_of(group, (dict,))]
    return [parameter for one in lists for parameter in _listed(one)]


def defaults(optimizer: Any) -> dict[str, Any]:
    """What an optimizer was made with."""
    found = _native.fields(optimizer).get("defaults")
    return dict(dict.items(found)) if is_one_of(found, (dict,)) else {}


def is_one_of(found: Any, kinds: tuple[type, ...]) -> bool:
    """Whether an object is of one of these classes, without asking it, as it may say anything."""
    return any(one is kind for one in of_type("__mro__", type(found)) for kind in kinds)


def class_name(kind: type) -> str:
    """The name of a class, without asking its own class, which may be the program's."""
    return str(of_type("__name__", kind))


def of_type(name: str, kind: type) -> Any:
    """An attribute that types have, without asking the class of this one."""
    return type.__dict__[name].__get__(kind)


def _fields(module: Any, name: str) -> dict[str, Any]:
    """What a module has registered under this name."""
    found: Any = (_native.fields(module) or {}).get(name)
    return found if type(found) in (dict, OrderedDict) else {}


def _listed(found: Any) -> Iterable[Any]:
    """What a list holds; nothing of anything else."""
    return list.__iter__(found) if is_one_of(found, (list,)) else ()

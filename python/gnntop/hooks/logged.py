"""The values that a program logs, such as its loss: each is a counter with its name.

Only numbers that are already Python's or numpy's are read. A tensor is not: reading it would wait for its device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import chain, islice
from typing import Any

from .. import _native
from .patching import Hook, on_uninstall

Values = Iterable[tuple[Any, Any]]
"""Names with values, of any type."""
Read = Callable[[tuple[Any, ...], dict[str, Any]], Values]
"""Takes the arguments of a call that logs."""

_MOST_NAMES = 256
"""Most names that are recorded."""
_NUMPY = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"]

_known: dict[str, tuple[int, str]] = {}
"""The counters, each with the library that logged it first: what another logs by the same name is the same again."""
_not_finite: set[str] = set()
_left_out = 0
_numpy_kinds: tuple[type, ...] = ()


def reader(library: str, read: Read) -> Callable[..., None]:
    """What `watch` calls with the arguments of each call that logs: it records the values among them."""
    hook = Hook(f"values of {library}")
    on_uninstall.append(_forget)

    def values(*args: Any, **kwargs: Any) -> None:
        if hook.is_on:
            try:
                _record(library, read(args, kwargs))
            except BaseException as error:
                hook.failed(error)

    return values


def single(position: int, name: str, value: str) -> Read:
    """A name and a value, from this position on or by these keywords."""

    def read(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Values:
        return [(_argument(args, kwargs, position, name), _argument(args, kwargs, position + 1, value))]

    return read


def several(position: int, keyword: str) -> Read:
    """A dictionary, at this position or by this keyword."""

    def read(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Values:
        return _items(_argument(args, kwargs, position, keyword))

    return read


def several_below(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Values:
    """TensorBoard's ``add_scalars``: a dictionary, whose names are below another one."""
    above = _argument(args, kwargs, 1, "main_tag")
    if type(above) is str:
        for name, value in _items(_argument(args, kwargs, 2, "tag_scalar_dict")):
            if type(name) is str:
                yield f"{above}/{name}", value


def postfix(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Values:
    """tqdm's ``set_postfix``: a dictionary, and keywords."""
    named = ((name, value) for name, value in kwargs.items() if name not in ("ordered_dict", "refresh"))
    return chain(_items(_argument(args, kwargs, 1, "ordered_dict")), named)


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], position: int, keyword: str) -> Any:
    return args[position] if len(args) > position else kwargs.get(keyword)


def _items(values: Any) -> Values:
    """What is in a dictionary, without its own code: that of other objects is not run at all."""
    try:
        return list(islice(dict.items(values), _MOST_NAMES))
    except TypeError:
        return ()


def _record(library: str, values: Values) -> None:
    for name, value in values:
        number = value if type(value) is float else _number(value)
        if number is None or type(name) is not str:
            continue
        known = _known.get(name) or _new(name, library)
        if known is not None and known[1] == library:
            _native.counter(known[0], number)
            if number - number != 0.0 and name not in _not_finite:
                _not_finite.add(name)
                _native.mark(_native.mark_name(f"{name} is {number}"))


def _number(value: Any) -> float | None:
    """The value of a number of another type; None for all else."""
    global _numpy_kinds
    kind: type = type(value)
    if kind is not int:
        if not _numpy_kinds and "numpy" in sys.modules:
            _numpy_kinds = tuple(getattr(sys.modules["numpy"], name) for name in _NUMPY)
        if not any(kind is known for known in _numpy_kinds):
            return None
    try:
        return float(value)
    except OverflowError:
        return None


def _new(name: str, library: str) -> tuple[int, str] | None:
    global _left_out
    if len(_known) < _MOST_NAMES:
        known = _known[name] = (_native.counter_name(name), library)
        return known
    _left_out += 1
    if _left_out & (_left_out - 1) == 0:
        _native.not_recorded("logged values beyond 256 names", f"{_left_out} or more")
    return None


def _forget() -> None:
    _known.clear()
    _not_finite.clear()

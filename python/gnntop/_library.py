"""The library of the native part: where it is, whether it is whole, and its functions, for `_native`."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

from ._environment import variable

_I32, _I64, _U64, _F64 = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64, ctypes.c_double
_TEXT = ctypes.c_char_p
# What the library can make built-in functions of, which take a third of the time of a call through ctypes.
_BUILTINS = (
    *("asked", "begin", "end", "end_to", "stamp", "span_between", "now", "step", "leave"),
    *("listen", "work_begin", "work_end", "fetch_end", "optimizer_before", "optimizer_after", "optimizer_steps"),
    *("expect", "made", "is_here", "is_elsewhere", "sending", "switch", "add_root", "remove_root", "fields", "shape"),
    *("read_with", "close_ring_with", "watch_waits", "collecting", "denormal_share", "denormal_cost", "Hooked"),
)
# Result, and argument types where a plain int does not do. PyDLL, not CDLL: to drop the GIL and get it back costs more
# than any of these calls, and up to 5 ms where another thread takes it.
_SIGNATURES: dict[str, tuple[Any, list[Any] | None]] = {
    "abi": (_I32, None),
    "begin": (_I32, None),
    "end": (None, None),
    "end_to": (None, None),
    "stamp": (None, None),
    "span_between": (None, None),
    "now": (_U64, None),
    "span_at": (None, [_I32, _U64, _U64]),
    "ns": (_F64, [_U64]),
    "step": (_I32, None),
    "step_between": (_I32, None),
    "traced": (None, None),
    "asked": (_I32, None),
    "_answered": (None, [_TEXT]),
    "epoch": (None, [_I64]),
    "counter": (None, [_I32, _F64]),
    "counter_int": (None, None),
    "mark": (None, None),
    "mark_value": (None, [_I32, _F64]),
    "mark_since": (None, None),
    "mark_at": (None, [_I32, _U64, _U64]),
    "allocation": (None, [_I64, _U64]),
    "status": (_I32, None),
    "track_end": (None, None),
    "close": (None, None),
    "flush": (_I32, None),
    "worker_close": (None, None),
    "cuda": (_I32, [_I32, _U64]),
    "resumed": (None, [_U64]),
    "loader_workers": (None, [_U64]),
    "_parameters": (None, [_TEXT, _U64]),
    "_goal": (None, [_U64, _U64, _TEXT]),
    "_name": (_I32, [_I32, _TEXT]),
    "_open": (_I32, [_TEXT, _TEXT]),
    "_fact": (None, [_TEXT, _TEXT]),
    "_not_recorded": (None, [_TEXT, _TEXT]),
    "_inferred": (None, [_I32, _TEXT]),
    "_track": (_I32, [_TEXT, _I32]),
    "_stacks": (_I32, [_TEXT, _I32, _I32]),
    "_batch": (None, [_I64, _I64, _I64, _I64, _I64]),
    "_worker_ring": (_I32, [_TEXT, _TEXT, _I32]),
    "_worker_attach": (_I32, [_TEXT]),
    "_text": (_I32, [_I32, _TEXT, _I32]),
}
# What may wait for a file system: without the GIL.
_WAITING: dict[str, list[Any]] = {"_append": [_TEXT, _TEXT], "_open_high": [_TEXT]}


def _path() -> str:
    """The library: ``GNNTOP_NATIVE``, else beside this file."""
    return variable("GNNTOP_NATIVE") or os.path.join(os.path.dirname(__file__), "libgnntop.so")


def _is_cut_short(path: str) -> bool:
    """Whether a library ends before its table of sections, its last part: to load it would crash the program."""
    with open(path, "rb") as file:
        head = file.read(64)
        size = os.fstat(file.fileno()).st_size
    at, entry, entries = (int.from_bytes(head[a:b], sys.byteorder) for a, b in ((40, 48), (58, 60), (60, 62)))
    return size < 64 or (head[:5] == b"\x7fELF\x02" and size < at + entry * entries)


def functions(abi: int) -> dict[str, Any]:
    """The functions of the library, by the names of `_native`; raises OSError if it is not ours."""
    path = _path()
    if _is_cut_short(path):
        raise OSError(f"{path} is damaged: it has been cut short")
    library, waiting = ctypes.PyDLL(path), ctypes.CDLL(path)
    found: dict[str, Any] = {}
    try:
        for name, (result, arguments) in _SIGNATURES.items():
            function = library[_symbol(name)]
            function.restype = result
            if arguments is not None:
                function.argtypes = arguments
            found[name] = function
        for name, arguments in _WAITING.items():
            found[name] = waiting[_symbol(name)]
            found[name].argtypes = arguments
    except AttributeError as error:
        raise OSError(f"{path}: {error}") from error
    if found.pop("abi")() != abi:
        raise OSError(f"{path} belongs to another version of gnntop")
    return found | _builtins(library)


def _symbol(name: str) -> str:
    return f"gnntop_{name.lstrip('_')}"


def _builtins(library: ctypes.PyDLL) -> dict[str, Any]:
    """The calls of every step as built-in functions; empty where there are none, as in PyPy."""
    try:
        make = library.gnntop_builtin
        make.restype, make.argtypes = ctypes.py_object, [_TEXT, _I32]
        made = {name: make(name.encode(), 0) for name in _BUILTINS}
    except (AttributeError, ValueError):
        return {}
    ending = library.gnntop_ending
    ending.restype, ending.argtypes = ctypes.py_object, [_I32, *[ctypes.py_object] * 3]
    return {} if None in made.values() else {**made, "_builtin": make, "_ending": ending}

"""The root modules of a run: the outermost that hold what an optimizer updates. Their calls are forward passes.

They are searched for after an optimizer has been made, right before the next batch is fetched or the gradients are set
to zero: by then a model has been compiled or wrapped for its ranks. Only roots are hooked, through the attribute in
which ``Module.compile`` keeps the function to call; copies and saved modules do not include it. A hook for all modules
would cost each of them, and would show in what torch compiles.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from .. import _native
from .patching import Hook, Hooked, on_uninstall, patch

MOST_ROOTS = 64

_hook = Hook("forward")
_torch: Any = None
_roots: weakref.WeakSet[Any] = weakref.WeakSet()


def install(torch: ModuleType) -> None:
    """Searches for roots whenever an optimizer has been made or a module compiled."""
    global _hook, _torch
    # A new one each time: an earlier one was switched off when the hooks were removed.
    _hook, _torch = Hook("forward"), torch
    _native.listen(_native.IS_GRAD_ENABLED, torch.is_grad_enabled)
    _native.listen(_native.TENSOR, torch.Tensor)
    patch(torch.optim.Optimizer, "_patch_step_function", lambda _: 0, look_soon)
    patch(torch.nn.Module, "compile", lambda _: 0, look_soon)
    patch(torch.nn.Module, "_replicate_for_data_parallel", lambda _: 0, _leave_replica)


def model() -> Any:
    """The root with the most parameters; None before any was found."""
    return max(_roots, key=_size, default=None)


def _size(module: Any) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def look_soon(_token: object = None, _result: object = None) -> None:
    """Searches for roots at the next fetch, or `zero_grad` without a loader: there may be new ones."""
    if not _native.is_elsewhere():
        _native.listen(_native.ON_ROOTS, _look)


def _look() -> None:
    if not _hook.is_on:
        return
    try:
        modules, optimizers = _alive()
        _native.expect(*map(id, optimizers))
        for root in find(modules, _parameters(optimizers)):
            hook_root(root)
    except BaseException as error:
        _hook.failed(error)


def _alive() -> tuple[list[Any], list[Any]]:
    """All modules and optimizers of this process. Wrappers of optimizers, which hold no parameters, do not count."""
    module, optimizer = _torch.nn.Module, _torch.optim.Optimizer
    modules, optimizers = [], []
    for candidate in gc.get_objects():
        kind = type(candidate)
        if issubclass(kind, module):
            modules.append(candidate)
        elif issubclass(kind, optimizer) and "param_groups" in vars(candidate):
            optimizers.append(candidate)
    return modules, optimizers


def _parameters(optimizers: Iterable[Any]) -> set[int]:
    return {id(p) for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]}


def find(modules: list[Any], updated: set[int]) -> list[Any]:
    """The outermost of these modules that hold parameters with these ids, without containers that cannot be called."""
    parents: dict[int, list[Any]] = {}
    for module in modules:
        for child in _children(module):
            parents.setdefault(id(child), []).append(module)
    owners = [m for m in modules if any(id(p) in updated for p in (vars(m).get("_parameters") or {}).values())]
    found: dict[int, Any] = {}
    seen: set[int] = set()
    while owners:
        module = owners.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        above = _callers(module, parents)
        if above:
            owners += above
        elif _can_be_called(module):
            found[id(module)] = module
    return list(found.values())[:MOST_ROOTS]


def _callers(module: Any, parents: dict[int, list[Any]]) -> list[Any]:
    """The callable modules above this one, with only lists and dictionaries between."""
    found, above, seen = [], list(parents.get(id(module), ())), set()
    while above:
        parent = above.pop()
        if _can_be_called(parent):
            found.append(parent)
        elif id(parent) not in seen:
            seen.add(id(parent))
            above += parents.get(id(parent), ())
    return found


def _children(module: Any) -> list[Any]:
    return [child for child in (vars(module).get("_modules") or {}).values() if child is not None]


def _can_be_called(module: Any) -> bool:
    # A compiled module has its `forward` as its own attribute.
    return "forward" in vars(module) or getattr(type(module).forward, "__name__", "") != "_forward_unimplemented"


def hook_root(root: Any) -> None:
    """Reports each call of this module to the loop."""
    if root in _roots or not _can_be_called(root):
        return
    _roots.add(root)
    compiled = vars(root).get("_compiled_call_impl")
    # Not the module itself: it would keep itself alive until the next garbage collection.
    this = weakref.ref(root)
    vars(root)["_compiled_call_impl"] = hooked = Hooked(compiled, _native.FORWARD, this)
    on_uninstall.append(lambda: _unhook_root(this(), hooked, compiled))


def is_hooked(module: Any) -> bool:
    """Whether we stand for a module's own function, and not for a compiled one."""
    hooked = getattr(module, "__dict__", {}).get("_compiled_call_impl")
    return isinstance(hooked, Hooked) and hooked.is_plain


def _leave_replica(_token: object, replica: Any) -> None:
    """A replica gets all of its module's attributes, and must not call that."""
    if is_hooked(replica):
        del vars(replica)["_compiled_call_impl"]


def _unhook_root(root: Any, hooked: Any, compiled: Any) -> None:
    if root is None or vars(root).get("_compiled_call_impl") is not hooked:
        return
    _roots.discard(root)
    if compiled is None:
        del vars(root)["_compiled_call_impl"]
    else:
        vars(root)["_compiled_call_impl"] = compiled

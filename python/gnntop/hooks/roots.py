"""The root modules of a run: the outermost that hold what an optimizer updates. Their calls are forward passes.

They are searched for among all objects, which takes some 50 ms, after the first optimizer has been made, right before
the next batch is fetched, gradients are computed or set to zero: by then a model has been compiled or wrapped for its
ranks. The roots of later optimizers, as of a sweep's next model, are found when they are called; only if that does not
happen is there another search. A module of which no optimizer has a parameter, such as a teacher, is a frozen root.
While no optimizer exists, as where a model is only run, the outermost modules with any parameters count, and those
whose `eval` is called. Nothing is added to a module, which could be copied with it: native code stands for
``Module._call_impl``, and knows the roots while they live. torch.compile finds the function itself there. Modules are
read without running any of their code.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from .. import _native
from . import reading, training_set
from .patching import Hook, on_uninstall, patch, watch

MOST_ROOTS = 64
# How often to search while there is no optimizer.
_MOST_GUESSES = 3

optimizer: tuple[str, dict[str, Any]] | None = None
"""The type of an optimizer that was found, and what it was made with."""
loaders: list[training_set.Loader] = []
"""The loaders that were found in the last search."""

_hook = Hook("forward")
_torch: Any = None
_roots: list[weakref.ref[Any]] = []
# Those found while there was no optimizer.
_guessed: list[weakref.ref[Any]] = []
_guesses = 0
_has_optimizers = False
_optimizers: list[weakref.ref[Any]] = []
# Searches among all objects may take this much at once and, beyond that, this share of the time since the first: some
# programs make an optimizer in every step.
_AT_ONCE_NS = 1e9
_SHARE = 0.01
_first_search = 0
_searched_ns = 0.0

# Whether all objects are to be searched, at the next look.
_must_search = True
_has_found = False
# How many looks may pass, and modules be asked about, before the roots of new optimizers are searched for: a step has
# three looks (a fetch, `zero_grad`, backward) between which they are called.
_PATIENCE = 3
_MOST_CALLS = 64
_patience = 0
_calls = 0
# Optimizers that are new, all parameters that optimizers have, and those of these whose root is not known.
_new: list[weakref.ref[Any]] = []
_updated: set[int] = set()
_missing: set[int] = set()


def install(torch: ModuleType) -> None:
    """Searches for roots whenever an optimizer has been made or a module compiled."""
    global _hook, _torch, _guesses, _must_search, _has_found
    # A new one each time: an earlier one was switched off when the hooks were removed.
    _hook, _torch, _guesses = Hook("forward"), torch, 0
    _must_search, _has_found = True, False
    _native.listen(_native.IS_GRAD_ENABLED, torch.is_grad_enabled)
    _native.listen(_native.TENSOR, torch.Tensor)
    _native.listen(_native.PARAMETER, torch.nn.Parameter)
    _native.listen(_native.UNHEARD, torch._C.DisableTorchFunction)
    _native.listen(_native.IS_HEARD, torch._C._len_torch_function_stack)
    watch(torch.nn.Module, "_call_impl", _native.OF_ROOTS)
    patch(torch.optim.Optimizer, "_patch_step_function", lambda args: args[0], _optimizer_made)
    _watch_evaluations(torch.nn.Module)
    patch(torch.nn.Module, "compile", lambda _: 0, look_soon)
    look_soon()


def install_transformers(modeling: ModuleType) -> None:
    """Hooks ``transformers.modeling_utils``: its models have an ``eval`` of their own."""
    if "eval" in vars(modeling.PreTrainedModel):
        _watch_evaluations(modeling.PreTrainedModel)


def _watch_evaluations(kind: type) -> None:
    patch(kind, "eval", _evaluating, lambda *_: None)


def model() -> Any:
    """The root with the most parameters; None before any was found."""
    alive = (root() for root in _roots)
    return max((root for root in alive if root is not None), key=reading.size, default=None)


def look_soon(_token: object = None, _result: object = None) -> None:
    """Searches for roots at the next fetch, or `zero_grad` without a loader: there may be new ones."""
    global _must_search
    _must_search = True
    _look_again()


def _look_again() -> None:
    if not _native.is_elsewhere():
        _native.listen(_native.ON_ROOTS, _look)


def _optimizer_made(optimizer: object, _result: object) -> None:
    global _has_optimizers
    _has_optimizers = True
    _native.made(optimizer)
    _optimizers.append(weakref.ref(optimizer))
    _new.append(_optimizers[-1])
    _look_again()


def _evaluating(args: tuple[Any, ...]) -> None:
    """Where a model is only run, it is the one that is set to evaluation."""
    if not (_has_optimizers or _native.is_elsewhere()) and reading.size(args[0]) > 0:
        _hook_guess(args[0])


def _look() -> None:
    global _searched_ns
    if not _hook.is_on:
        return
    begin = _native.now()
    try:
        if _must_search or _gives_up():
            _search(begin)
        else:
            _native.expect(*map(id, _known_optimizers()))
    except BaseException as error:
        _hook.failed(error)
    _searched_ns += _native.ns(_native.now() - begin)


def _search(begin: int) -> None:
    """Among all objects."""
    global _must_search, _has_found
    modules = _modules() if _may_search(begin) else None
    optimizers = _known_optimizers()
    _native.expect(*map(id, optimizers))
    if modules is None:
        look_soon()
        return
    _must_search = False
    if optimizers:
        _hook_all(find(modules, _parameters(optimizers)))
        _has_found = True
        _new.clear()
        _expect_calls(optimizers, set())
    else:
        _guess(modules)


def _gives_up() -> bool:
    """Whether the roots of new optimizers have not been called, where these had to be."""
    global _patience
    new = [one for known in _new if (one := known()) is not None]
    _new.clear()
    if new and not _has_found:
        return True
    if new:
        known = {id(parameter) for root in _roots if (it := root()) is not None for parameter in reading.parameters(it)}
        _expect_calls(_known_optimizers(), _parameters(new) - known)
        return False
    _patience -= 1
    if _patience > 0:
        _look_again()
        return False
    _native.listen(_native.ON_CALL, None)
    return bool(_missing)


def _expect_calls(optimizers: list[Any], missing: set[int]) -> None:
    """Modules that are called next, outside of all roots, may be roots, of parameters that are `missing` or not."""
    global _patience, _calls, _updated, _missing
    _patience, _calls, _updated, _missing = _PATIENCE + 1, 0, _parameters(optimizers), missing
    _native.listen(_native.ON_CALL, _called)
    _look_again()


def _called(module: Any) -> None:
    """Takes a module that is called and is no root, outside of all."""
    global _calls
    if not _hook.is_on or _torch._C._get_tracing_state() is not None:  # shapes that are read would be in the graph
        return
    try:
        held = {id(parameter) for parameter in reading.parameters(module)}
        if held:
            hook_root(module, is_frozen=not held & _updated)
            _missing.difference_update(held)
        _calls += 1
        if _calls >= _MOST_CALLS:
            _native.listen(_native.ON_CALL, None)
    except BaseException as error:
        _hook.failed(error)


def _may_search(now: int) -> bool:
    global _first_search
    _first_search = _first_search or now
    return _searched_ns <= _AT_ONCE_NS + _SHARE * _native.ns(now - _first_search)


def _known_optimizers() -> list[Any]:
    """The optimizers that live. Wrappers of optimizers, which hold no parameters, do not count."""
    global optimizer
    _optimizers[:] = [known for known in _optimizers if known() is not None]
    alive = [one for known in _optimizers if (one := known()) is not None]
    alive = [one for one in alive if "param_groups" in (_native.fields(one) or ())]
    if alive:
        optimizer = reading.class_name(type(alive[-1])), reading.defaults(alive[-1])
    return alive


def _hook_all(roots: list[Any]) -> None:
    """Hooks the roots, and no longer those that were guessed and are none."""
    for guess in [known() for known in _guessed]:
        if guess is not None and not any(guess is root for root in roots):
            _native.remove_root(guess)
    _guessed.clear()
    for root in roots:
        hook_root(root)


def _guess(modules: list[Any]) -> None:
    """There is no optimizer: roots are the outermost modules with parameters. There may be more of them later."""
    global _guesses
    for root in find(modules, {id(p) for m in modules for p in reading.own_parameters(m)}):
        _hook_guess(root)
    _guesses += 1
    if _guesses < _MOST_GUESSES:
        look_soon()


def _hook_guess(root: Any) -> None:
    hook_root(root)
    _guessed.append(weakref.ref(root))


def _modules() -> list[Any]:
    """All modules. Notes the loaders, and optimizers that were made before there were hooks.

    Python's collector, which is asked, does not know what was frozen (`gc.freeze`).
    """
    module, base = _torch.nn.Module, _torch.optim.Optimizer
    loading = _loading() or module
    known = {id(one()) for one in _optimizers}
    modules = []
    loaders.clear()
    for candidate in gc.get_objects():
        kind = type(candidate)
        if issubclass(kind, module):
            modules.append(candidate)
        elif issubclass(kind, base) and id(candidate) not in known:
            _optimizers.append(weakref.ref(candidate))
        elif issubclass(kind, loading):
            loaders.append(training_set.Loader(_native.fields(candidate) or {}))
    return modules


def _loading() -> Any:
    """The types of loaders, and of what iterates over one."""
    dataloader = sys.modules.get("torch.utils.data.dataloader")
    names = ("DataLoader", "_BaseDataLoaderIter")
    return tuple(kind for name in names if (kind := getattr(dataloader, name, None)) is not None)


def _parameters(optimizers: Iterable[Any]) -> set[int]:
    return {id(parameter) for optimizer in optimizers for parameter in reading.parameters_of(optimizer)}


def find(modules: list[Any], updated: set[int]) -> list[Any]:
    """The outermost of these modules that hold parameters with these ids, without containers that cannot be called."""
    parents: dict[int, list[Any]] = {}
    for module in modules:
        for child in reading.children(module):
            parents.setdefault(id(child), []).append(module)
    owners = [m for m in modules if any(id(p) in updated for p in reading.own_parameters(m))]
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


def _can_be_called(module: Any) -> bool:
    # A compiled module has its `forward` as its own attribute.
    if "forward" in _native.fields(module):
        return True
    for kind in reading.of_type("__mro__", type(module)):
        if kind is _torch.nn.Module:
            break
        if "forward" in reading.of_type("__dict__", kind):
            return True
    return False


def hook_root(root: Any, is_frozen: bool = False) -> None:
    """Reports each call of this module to the loop."""
    if not _can_be_called(root):
        return
    if _native.add_root(root, is_frozen) and not is_frozen:
        _roots[:] = [known for known in _roots if known() is not None]
        _roots.append(weakref.ref(root))
    fields = _native.fields(root)
    compiled = fields.get("_compiled_call_impl")
    if compiled is not None and type(compiled) is not _native.Hooked:
        # Not the module itself: it would keep itself alive until the next garbage collection.
        this = weakref.ref(root)
        fields["_compiled_call_impl"] = hooked = _native.Hooked(compiled, _native.FORWARD, this)
        on_uninstall.append(lambda: _unhook_root(this(), hooked, compiled))


def _unhook_root(root: Any, hooked: Any, compiled: Any) -> None:
    fields = {} if root is None else _native.fields(root)
    if fields.get("_compiled_call_impl") is hooked:
        fields["_compiled_call_impl"] = compiled

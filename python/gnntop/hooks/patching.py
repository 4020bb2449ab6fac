"""Hooks functions of other libraries: called as before, with ours before and after them.

A hook of ours that raises is switched off for good, and reported once as a fact of the session. The program never
notices, whatever is raised, such as a ``SystemExit``. An exception from outside, as of a handler of a signal that
arrived while a hook ran, is the program's and reaches it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from .. import _native
from .._signals import is_the_programs

Before = Callable[[tuple[Any, ...]], Any]
"""Takes the positional arguments of the call. Its result goes to `After`, which is not called for None."""
After = Callable[[Any, Any], None]
"""Takes the result of `Before`, and the call's result (None if it raised)."""

broken: dict[str, str] = {}
"""The hooks that raised, by name, with what they raised."""

on_uninstall: list[Callable[[], Any]] = []
"""Functions that remove the hooks, to be called from the newest to the oldest."""

_MISSING = object()
UNCOUNTED = "<gnntop importlib._bootstrap>"
"""The file of a hooked function's code. With these words in it, `warnings` and `logging` do not count its frame, as
they do not count those of an import: what a library says of its caller is then said of the program. In brackets, as
``coverage`` would look for the file; not ``<frozen``, as torch.compile does not trace into what is called so."""


def _never() -> bool:
    return False


is_compiling: Callable[[], bool] = _never
"""Whether torch.compile is tracing the caller: hooks then do nothing, and leave no trace in the compiled code."""


class Hook:
    """One of our hooks, on until it raises."""

    __slots__ = ("is_on", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_on = True
        on_uninstall.append(self.switch_off)

    def switch_off(self) -> None:
        """From now on, calls go only to the library."""
        self.is_on = False

    def failed(self, error: BaseException) -> None:
        """Switches the hook off and reports it, once. An exception that is the program's is raised again."""
        if is_the_programs(error):
            raise error
        if self.is_on:
            self.is_on = False
            broken[self.name] = described(error)
            _native.fact(f"hook switched off: {self.name}", broken[self.name])


def described(error: BaseException) -> str:
    """An exception in one line; its own words may be code of the program that raises."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:
        return type(error).__name__


def guarded(name: str, call: Callable[..., Any]) -> Callable[..., None]:
    """Wraps a callback for a library: it returns None, and does nothing more after it has raised."""
    hook = Hook(name)

    def callback(*args: Any) -> None:
        if hook.is_on and not is_compiling():
            try:
                call(*args)
            except BaseException as error:
                hook.failed(error)

    return callback


def around(
    real: Callable[..., Any], name: str, before: Before, after: After, names: tuple[str, ...] = ()
) -> Callable[..., Any]:
    """Returns a function that does what `real` does, with `before` and `after` called around it.

    ``before`` gets the arguments that are given by position, then those that are given by one of these ``names``.
    """
    hook = Hook(name)

    @functools.wraps(real, (*functools.WRAPPER_ASSIGNMENTS, "__defaults__", "__kwdefaults__"))
    def hooked(*args: Any, **kwargs: Any) -> Any:
        token = None
        if hook.is_on and not is_compiling():
            try:
                token = before((*args, *(kwargs[name] for name in names if name in kwargs)) if names else args)
            except BaseException as error:
                hook.failed(error)
        if token is None:
            return real(*args, **kwargs)
        result = None
        try:
            result = real(*args, **kwargs)
            return result
        finally:
            try:
                after(token, result)
            except BaseException as error:
                hook.failed(error)

    code = hooked.__code__.replace(co_filename=UNCOUNTED)  # type: ignore[attr-defined]
    hooked.__code__ = code  # type: ignore[attr-defined]
    return hooked


def patch(owner: Any, attribute: str, before: Before, after: After, names: tuple[str, ...] = ()) -> None:
    """Hooks an attribute of a class or module; see `around`. Does nothing if there is no such attribute."""
    real = getattr(owner, attribute, None)
    if real is not None:
        name = f"{getattr(owner, '__module__', '')}.{owner.__name__}.{attribute}".lstrip(".")
        _replace(owner, attribute, around(real, name, before, after, names), real)


def watch(owner: Any, attribute: str, work: int, reads: Callable[..., None] | int | None = None) -> None:
    """Reports calls of an attribute of a class or module as work, if there is such an attribute.

    No Python of ours runs, except for ``reads``: it is called before with the same arguments, unless the call is inside
    another that is read; for ``OF_FETCHER`` it is a name. Only for what torch.compile does not trace: it can trace
    `patch`, and not this.
    """
    real = getattr(owner, attribute, None)
    if real is not None:
        _replace(owner, attribute, _native.Hooked(real, work, reads), real)


def defining(kind: type, attribute: str) -> type:
    """The class that an attribute of a class is inherited from, or the class itself."""
    return next((one for one in kind.__mro__ if one is not object and attribute in vars(one)), kind)


def _replace(owner: Any, attribute: str, hooked: Any, real: Any) -> None:
    _tell_script(hooked, real)
    if isinstance(owner, type):
        # Not in a class that inherits it: pickle looks where it was defined, and so does a program that replaces it.
        owner = defining(owner, attribute)
    _set(owner, attribute, hooked)
    # Pickle takes a function only if it is the same where it was defined; the packages around that pass it on.
    name, path = getattr(real, "__qualname__", ""), getattr(real, "__module__", None) or ""
    while path:
        home = sys.modules.get(path)
        if home is not owner and getattr(home, name, None) is real:
            _set(home, name, hooked)
        path = path.rpartition(".")[0]


def _set(owner: Any, attribute: str, hooked: Any) -> None:
    was = vars(owner).get(attribute, _MISSING)
    setattr(owner, attribute, hooked)
    on_uninstall.append(lambda: _restore(owner, attribute, hooked, was))


def _tell_script(hooked: Any, real: Any) -> None:
    """``torch.jit.script`` knows some functions by their identity, and compiles the source of all others."""
    builtins = sys.modules.get("torch.jit._builtins")
    known = getattr(builtins, "_builtin_ops", [])
    name = next((name for function, name in known if function is real), None)
    if name is not None:
        known.append((hooked, name))
        table = getattr(builtins, "_builtin_table", None)  # made of these when a first script is compiled
        if table is not None:
            table[id(hooked)] = name


def _restore(owner: Any, attribute: str, hooked: Any, was: Any) -> None:
    """Restores an attribute, unless it has been hooked again after us."""
    if vars(owner).get(attribute) is not hooked:
        return
    if was is _MISSING:
        delattr(owner, attribute)
    else:
        setattr(owner, attribute, was)

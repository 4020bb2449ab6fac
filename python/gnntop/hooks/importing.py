"""Calls a function after a module has been imported, by any importer."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Finder:
    """First in ``sys.meta_path``: lets the finders after it find a module, and adds the call to its loader."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[Callable[[ModuleType], None]]] = {}
        # Modules being searched for, so that the finders after this one are asked and not this one again.
        self._busy: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self.waiting or name in self._busy:
            self._catch(name.rpartition(".")[0])
            return None
        self._busy.add(name)
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, AttributeError, ValueError):
            return None  # the import itself reports the error
        finally:
            self._busy.discard(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            _call_after(spec, self)
        return spec

    def _catch(self, parent: str) -> None:
        """Waits for the end of a module's import that another library's finder, in front of this one, has begun."""
        if parent in self.waiting:
            _watch(sys.modules.get(parent))

    def imported(self, module: ModuleType) -> None:
        """A module has been imported in full."""
        for call in self.waiting.pop(module.__name__, ()):
            call(module)


def _call_after(spec: ModuleSpec, finder: _Finder) -> None:
    """Notifies the finder when the module of this spec has been executed."""
    loader: Any = spec.loader
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        # Modules may look at their loader, so it is restored before they run.
        try:
            del loader.exec_module
        except AttributeError:
            loader.exec_module = execute
        execute(module)
        finder.imported(module)

    try:
        loader.exec_module = exec_module
    except AttributeError:
        return  # a loader without its own attributes: such modules are not hooked


_finder = _Finder()


class _Initializing(ModuleSpec):
    """The spec of a module that is being imported already: Python marks it when that is done."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "_initializing" and not value:
            object.__setattr__(self, "__class__", ModuleSpec)
            module = sys.modules.get(self.name)
            if module is not None:  # the import has not failed
                _finder.imported(module)


def _watch(module: ModuleType | None) -> None:
    spec = getattr(module, "__spec__", None)
    if type(spec) is ModuleSpec and getattr(spec, "_initializing", False):
        spec.__class__ = _Initializing


def when_imported(name: str, call: Callable[[ModuleType], None]) -> None:
    """Calls ``call`` with the module of this name: now if it is already imported, else right after its import.

    ``call`` must not raise.
    """
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    if module is not None and not getattr(spec, "_initializing", False):
        call(module)
        return
    _watch(module)  # a program was joined in the middle of this import
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.waiting.setdefault(name, []).append(call)


def forget() -> None:
    """Stops waiting for modules."""
    _finder.waiting.clear()
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)

"""Runs at the start of every Python program under ``gnntop run``: waits for torch, and hooks it when imported.

Called by ``bootstrap/sitecustomize.py``. A program that never imports torch pays only for this file.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from gnntop import _answers


class _TorchFinder:
    """First in ``sys.meta_path``: at the first search for torch it installs the hooks and removes itself."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Finds what the finders after it find."""
        if name != "torch":
            return None
        try:
            sys.meta_path.remove(self)
        except ValueError:
            return None  # another thread was faster
        install()
        # The import continues with the finder after this one, and would miss one that was put in front.
        for finder in list(sys.meta_path):
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        return None


_has_started = False


def start() -> None:
    """Hooks torch, now or when it is imported. Once: a second call does nothing."""
    global _has_started
    if _has_started:
        return
    _has_started = True
    _answers.tell(f"python {sys.version.split()[0]}")
    if "torch" in sys.modules:
        install()
    else:
        sys.meta_path.insert(0, _TorchFinder())


def stop() -> None:
    """Stops waiting for torch; `start` may be called again."""
    global _has_started
    _has_started = False
    for finder in list(sys.meta_path):
        if isinstance(finder, _TorchFinder):
            sys.meta_path.remove(finder)


def install() -> None:
    """Installs the hooks. Errors are reported to ``gnntop run`` and never reach the program."""
    try:
        from gnntop import _native, _program, hooks

        if not _native.available:
            _answers.tell(f"problem {_native.problem}")
            return
        _program.close_at_exit()
        hooks.install()
        _answers.tell("torch")
    except Exception as error:
        _answers.tell(f"problem {type(error).__name__}: {error}")

"""Runs at the start of every Python program under ``gnntop run``: waits for torch, and hooks it when imported.

Called by ``bootstrap/sitecustomize.py``. A program that never imports torch pays only for this file, which imports
nothing that Python itself has not imported before. What the hooks need of the standard library is imported with torch.
"""

import os
import sys

from . import _answers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

PRIVATE = "_gnntop"
"""This package's name where the program has not imported it: the program may have another ``gnntop``."""
PUBLIC = "gnntop"

_NEEDED = [
    "__future__",
    "_ctypes",
    "_opcode",
    "_opcode_metadata",
    "_struct",
    "_typing",
    "_weakrefset",
    "collections",
    "contextlib",
    "copyreg",
    "ctypes",
    "enum",
    "faulthandler",
    "functools",
    "importlib",
    "keyword",
    "math",
    "opcode",
    "operator",
    "re",
    "reprlib",
    "struct",
    "threading",
    "types",
    "typing",
    "warnings",
    "weakref",
]
"""What the hooks import of the standard library before torch does, with what that imports."""


_ZIP = f"python{sys.version_info[0]}{sys.version_info[1]}.zip"
"""Where a Python may have its standard library instead."""


class _TorchFinder:
    """First in ``sys.meta_path``: at the first search for torch it installs the hooks and removes itself.

    Also at the first search for a part of torch: a finder that another library has put in front of it may have found
    torch itself.
    """

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """Finds what the finders after it find."""
        if name != "torch" and not (name.startswith("torch.") and "torch" in sys.modules):
            return None
        try:
            place = sys.meta_path.index(self)
        except ValueError:
            return None  # another thread was faster
        asked = sys.meta_path[:place]
        del sys.meta_path[place]
        install()
        # The import continues behind this place, where one finder has moved up and ours were put in front.
        for finder in [finder for finder in sys.meta_path if finder not in asked]:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        return None


class _OwnFinder:
    """Last in ``sys.meta_path``: a program that imports ``gnntop`` and has none gets this package.

    Also if it has removed it from ``sys.modules``, or loads it again.
    """

    def __init__(self, package: "ModuleType") -> None:
        self.package, self.spec = package, package.__spec__

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """Finds this package under its public name, and under its own."""
        if name != PUBLIC or self.spec is None:
            return self.spec if name == PRIVATE else None
        return type(self.spec)(PUBLIC, self, origin=self.package.__file__)  # type: ignore[arg-type]

    def create_module(self, spec: "ModuleSpec") -> "ModuleType":
        """The package, as it is."""
        sys.modules.setdefault(PRIVATE, self.package)
        return self.package

    def exec_module(self, module: "ModuleType") -> None:
        """Undoes what the import has changed in it."""
        module.__spec__ = self.spec


_has_started = False
_has_found_torch = False


def start() -> None:
    """Hooks torch, now or when it is imported. Once: a second call does nothing."""
    global _has_started
    if _has_started:
        return
    _has_started = True
    _answers.tell(f"python {sys.version.split()[0]}")
    if __package__ == PRIVATE:
        sys.meta_path.append(_OwnFinder(sys.modules[PRIVATE]))
    if "torch" in sys.modules:
        install()
    else:
        sys.meta_path.insert(0, _TorchFinder())
        _when_it_ends(_look_at_end)


def stop() -> None:
    """Stops waiting for torch; `start` may be called again."""
    global _has_started
    _has_started = False
    for finder in list(sys.meta_path):
        if isinstance(finder, (_TorchFinder, _OwnFinder)):
            sys.meta_path.remove(finder)


def _when_it_ends(call: "Callable[[], None]") -> None:
    """Registers with ``atexit``, and leaves it as unknown as it was: its callbacks are the interpreter's."""
    is_known = "atexit" in sys.modules
    import atexit

    atexit.register(call)
    if not is_known:
        del sys.modules["atexit"]


def _look_at_end() -> None:
    """Says that torch was imported unseen, where that is so."""
    if "torch" in sys.modules and not _has_found_torch:
        _answers.tell(f"problem {_UNSEEN}")


_UNSEEN = (
    "sys.meta_path, where gnntop waits for torch, was replaced before torch was imported: "
    "import torch before that, or keep what is in it"
)


def install() -> None:
    """Installs the hooks. Our errors are reported to ``gnntop run`` and never reach the program."""
    global _has_found_torch
    _has_found_torch = True
    try:
        hidden = _hidden()
        if hidden:
            _answers.tell(f"problem {hidden} takes the place of a module of Python's that gnntop needs; rename it")
            return
        from . import _native, _program, hooks

        if not _native.available:
            _answers.tell(f"problem {_native.problem}")
            return
        _program.close_at_exit()
        hooks.install()
        _answers.tell("torch")
    except (Exception, SystemExit) as error:
        _answers.tell(f"problem {type(error).__name__}: {error}")
        signals = sys.modules.get(f"{__package__}._signals")
        if signals is not None and signals.is_the_programs(error):
            raise  # a handler of a signal, which arrived just now


def _hidden() -> str:
    """A module of the program that would be imported in place of one of the standard library, which the hooks need."""
    import _frozen_importlib_external as external

    standard = os.path.normpath(os.path.dirname(os.__file__))
    paths = [os.path.normpath(folder) for folder in sys.path]
    if standard not in paths:
        return ""
    folders = [folder for folder in sys.path[: paths.index(standard)] if os.path.basename(folder) != _ZIP]
    for name in _NEEDED:
        if name not in sys.modules and name not in sys.builtin_module_names:
            spec = external.PathFinder.find_spec(name, folders)
            if spec is not None and spec.loader is not None:
                return str(spec.origin)
    return ""


def restored(addresses: list[str], original: "Callable[[int], None] | None") -> "Callable[[int], None] | None":
    """What a loader's worker calls first: see ``hooks/workers.py``. The program's own if hooks cannot be loaded."""
    try:
        from .hooks.workers import Start
    except Exception:
        return original
    return Start(addresses, original)

"""What the hooks take of a step, alone: around functions that do nothing, with warm caches. Prints nanoseconds.

PYTHONPATH=python GNNTOP_NATIVE=target/release/libgnntop_python.so python python/benches/hooks.py
"""

from __future__ import annotations

from time import perf_counter_ns

from gnntop import _native
from gnntop.hooks import loop, patching

STEPS = 20


class Library:
    """Stands for a loader, a module, an optimizer and autograd."""

    training = True

    def __iter__(self) -> Library:
        """Gives batches."""
        return self

    def __next__(self) -> list[int]:
        """A batch."""
        return []

    def zero_grad(self) -> None:
        """Does nothing."""

    def _call_impl(self, batch: object) -> object:
        return batch

    def backward(self) -> None:
        """Does nothing."""


def least(library: Library, before: object, after: object, means: int = 6000) -> float:
    """The least of this number of means, each over some steps."""
    found, arguments, names = float("inf"), (library,), {}
    for _ in range(means):
        begin = perf_counter_ns()
        for _ in range(STEPS):
            batch = next(library)
            library.zero_grad()
            library._call_impl(batch)
            library.backward()
            before(library, arguments, names)
            after(library, arguments, names)
        found = min(found, (perf_counter_ns() - begin) / STEPS)
    return found


library = Library()
alone = least(library, lambda *_: None, lambda *_: None)
loop.install()
patching.watch(Library, "__next__", _native.FETCH)
patching.watch(Library, "zero_grad", _native.ZERO_GRAD)
patching.watch(Library, "backward", _native.BACKWARD)
_native.listen(_native.IS_GRAD_ENABLED, lambda: True)
patching.watch(Library, "_call_impl", _native.OF_ROOTS)
_native.add_root(library)
hooked = least(library, _native.optimizer_before, _native.optimizer_after)
print(f"{alone:.0f} alone, {hooked:.0f} hooked: {hooked - alone:+.0f} ns a step, {_native.step() - 1} steps")

"""Denormal numbers among the gradients: a sample is looked at once a second, of a few parameters in turn.

Many processors compute with them a hundred times slower. Only gradients on the CPU are looked at, as GPUs do not mind.
Nothing runs any code of the optimizer and the tensors, and nothing is computed by torch. What is counted is an integer:
a program may have set its thread to be ended by the inexact results of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

from .. import _native
from . import loop, reading
from .patching import guarded, on_uninstall

_AT_ONCE = 8
"""Parameters of one look."""
_WORTH_A_LOOK = 1000
"""From this share on, in millionths, it is reported, with what it costs."""
_MEASURES = 5
"""How often the cost is measured. The most counts: what else runs on the core slows both kinds of numbers down."""


def install(torch: ModuleType) -> None:
    """Looks at the gradients of each session."""
    if not hasattr(torch._C, "_data_address"):
        return  # the other way to an address may copy a tensor that shares its memory until it is written to

    def watch() -> None:
        gradients = Gradients(torch)
        _native.listen(_native.ON_GRADIENTS, guarded("gradients", gradients.look))

    loop.on_open.append(watch)
    on_uninstall.extend((lambda: loop.on_open.remove(watch), lambda: _native.listen(_native.ON_GRADIENTS, None)))


class Gradients:
    """Takes samples, and reports what is denormal once anything is."""

    def __init__(self, torch: ModuleType) -> None:
        self._torch, self._base = torch, torch._C.TensorBase
        self._types = {torch.float32: 0, torch.bfloat16: 1, torch.float64: 2}
        self._looks = self._measures = 0
        self._cost = 0

    def look(self, optimizer: Any) -> None:
        """A step of this optimizer begins."""
        if self._torch._C._len_torch_function_stack() or self._torch._C._len_torch_dispatch_stack():
            return  # the program would hear of it
        share = _native.denormal_share(*(number for one in self._some(optimizer) for number in one))
        self._looks += 1
        if share is None or not (self._measures or share >= _WORTH_A_LOOK):
            return
        if self._measures < _MEASURES:
            self._measures += 1
            self._cost = max(self._cost, _native.denormal_cost())
        _native.counter_int(_native.reported_name("denormal gradients in a million"), share)
        _native.counter_int(_native.reported_name("cost of denormals in percent"), self._cost)

    def _some(self, optimizer: Any) -> Iterator[tuple[int, int, int]]:
        """Address, length and type of some of the gradients; of others the next time."""
        parameters = reading.parameters_of(optimizer)
        apart = max(len(parameters) // _AT_ONCE, 1)
        for parameter in parameters[self._looks % apart :: apart]:
            if type(parameter) is self._torch.nn.Parameter or type(parameter) is self._torch.Tensor:
                gradient = self._base.grad.__get__(parameter)
                if type(gradient) is self._torch.Tensor and (numbers := self._numbers(gradient)):
                    yield numbers

    def _numbers(self, gradient: Any) -> tuple[int, int, int] | None:
        """Where a gradient's numbers are, if they are next to each other in this machine's memory."""
        base = self._base
        stored = self._types.get(base.dtype.__get__(gradient))
        is_here = base.is_cpu.__get__(gradient) and base.layout.__get__(gradient) is self._torch.strided
        if stored is None or not is_here or not base.is_contiguous(gradient):
            return None
        return self._torch._C._data_address(gradient), base.numel(gradient), stored

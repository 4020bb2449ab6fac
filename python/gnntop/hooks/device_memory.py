"""The GPU's memory by phase, as PyTorch's allocator counts it.

Some steps are measured, at most ten a second: the allocator is read at the ends of their phases. Nothing is reset,
since the peaks belong to the program. So a phase's peak is at least the use at its ends, and exact if the allocator's
peak rose in the phase.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from types import ModuleType
from typing import Any

from .. import _native
from .patching import guarded, on_uninstall

Stats = dict[str, Any]

_MEASURE_EVERY_S = 0.1
# How often there was no memory left, and blocks that nobody used were given back; and how often that did not help.
_FAILURES = {"retries": "num_alloc_retries", "out of memory": "num_ooms"}
_HOW_PEAKS = "lower bounds: read at the ends of phases; the program's peak is the highest so far"


def install(torch: ModuleType, device: int) -> None:
    """Watches the memory of this device from here on."""
    read = torch._C._cuda_memoryStats
    memory = DeviceMemory(lambda: read(device))
    total = torch.cuda.get_device_properties(device).total_memory
    _native.counter(_native.reported_name("device memory total"), float(total))
    _native.fact("device memory peaks", _HOW_PEAKS)
    _native.listen(_native.ON_EDGE, guarded("device memory", memory.at))
    on_uninstall.append(_uninstall)


def _uninstall() -> None:
    _native.listen(_native.ON_EDGE, None)


class DeviceMemory:
    """Reads the allocator at the edges of phases, and records what a step needed at its end."""

    def __init__(self, stats: Callable[[], Stats], clock: Callable[[], float] = monotonic) -> None:
        self._stats = stats
        self._clock = clock
        self._names: dict[str, int] = {}
        # The step in which the session opens is measured from that point on.
        self._is_measuring = True
        self._measured = clock()
        self._begin()

    def _begin(self) -> None:
        """Starts to measure a step."""
        self._used, self._peak, _, self._allocations = _read(self._stats())
        self._before_forward: int | None = None
        self._peaks: dict[str, int] = {}
        self._activations: int | None = None

    def at(self, edge: str) -> None:
        """A phase has ended, forward begins ("begin"), or the step ends ("step")."""
        if edge == "step":
            self._end_step()
        elif self._is_measuring:
            self._read_at(edge)

    def _read_at(self, edge: str) -> None:
        used, peak, _, _ = _read(self._stats())
        if edge == "begin":
            self._before_forward = used
        else:
            most = peak if peak > self._peak else max(used, self._used)
            self._peaks[edge] = max(most, self._peaks.get(edge, 0))
            if edge == "forward" and self._before_forward is not None:
                self._activations = max(used - self._before_forward, 0)
        self._used, self._peak = used, peak

    def _end_step(self) -> None:
        now = self._clock()
        if self._is_measuring:
            self._is_measuring = False
            self._measured = now
            self._record()
        elif now - self._measured >= _MEASURE_EVERY_S:
            self._is_measuring = True
            self._begin()

    def _record(self) -> None:
        stats = self._stats()
        used, peak, reserved, allocations = _read(stats)
        self._count("used", used)
        self._count("peak", peak)
        self._count("reserved", reserved)
        self._count("allocations", allocations - self._allocations)
        for what, figure in _FAILURES.items():
            self._count(what, stats.get(figure, 0))
        if self._activations is not None:
            self._count("of activations", self._activations)
        for phase, most in self._peaks.items():
            self._count(f"peak in {phase}", most)

    def _count(self, what: str, value: int) -> None:
        name = self._names.get(what)
        if name is None:
            name = self._names[what] = _native.reported_name(f"device memory {what}")
        _native.counter(name, float(value))


def _read(stats: Stats) -> tuple[int, int, int, int]:
    """Bytes in tensors, now and at the peak, bytes taken from the device, and allocations so far."""

    def of(what: str, which: str) -> Any:
        return stats[what]["all"][which]

    used = of("allocated_bytes", "current"), of("allocated_bytes", "peak")
    return *used, of("reserved_bytes", "current"), of("allocation", "allocated")

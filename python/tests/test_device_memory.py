"""The GPU's memory by phase, with a stand-in for torch: statistics in the shape of `torch._C._cuda_memoryStats`."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Recorder

from gnntop import _native
from gnntop.hooks import loop, patching, pytorch
from gnntop.hooks.device_memory import DeviceMemory, Stats


class Allocator:
    """What PyTorch's caching allocator counts. Only the program resets its peak."""

    def __init__(self) -> None:
        self.current = self.peak = self.reserved = self.allocated = self.reads = self.retries = 0

    def take(self, size: int) -> None:
        self.current += size
        self.allocated += size > 0
        self.peak = max(self.peak, self.current)
        self.reserved = max(self.reserved, self.current)

    def stats(self, _device: int = 0) -> Stats:
        self.reads += 1

        def counted(current: int, peak: int, allocated: int) -> dict[str, dict[str, int]]:
            one = {"current": current, "peak": peak, "allocated": allocated, "freed": allocated - current}
            return {"all": one, "small_pool": dict.fromkeys(one, 0), "large_pool": one}

        return {
            "allocated_bytes": counted(self.current, self.peak, self.allocated),
            "reserved_bytes": counted(self.reserved, self.reserved, 1),
            "allocation": counted(1, 1, self.allocated),
            "num_alloc_retries": self.retries,
            "num_ooms": 0,
        }


@pytest.fixture
def allocator() -> Allocator:
    allocator = Allocator()
    allocator.take(1000)  # the model
    return allocator


def step(memory: DeviceMemory, allocator: Allocator) -> None:
    """Activations of 500 and gradients of 1000, each with some more for a moment."""
    memory.at("begin")
    for size in (500, 50, -50):
        allocator.take(size)
    memory.at("forward")
    for size in (1000, 200, -200, -500):
        allocator.take(size)
    memory.at("backward")
    allocator.take(-1000)
    memory.at("optimizer")
    memory.at("step")


def test_memory_by_phase(recorder: Recorder, allocator: Allocator) -> None:
    memory = DeviceMemory(allocator.stats, clock=lambda: 0.0)
    allocator.retries = 3
    step(memory, allocator)
    assert dict(recorder.counters) == {
        "device memory used": 1000,
        "device memory peak": 2700,
        "device memory reserved": 2700,
        "device memory allocations": 4,
        "device memory retries": 3,
        "device memory out of memory": 0,
        "device memory of activations": 500,
        "device memory peak in forward": 1550,
        "device memory peak in backward": 2700,
        "device memory peak in optimizer": 2000,
    }


def test_without_a_new_peak_the_ends_of_a_phase_bound_it(recorder: Recorder, allocator: Allocator) -> None:
    now = iter(float(second) for second in range(100))
    memory = DeviceMemory(allocator.stats, clock=lambda: next(now))
    step(memory, allocator)
    memory.at("step")  # the next is measured
    recorder.counters.clear()
    step(memory, allocator)
    counters = dict(recorder.counters)
    assert counters["device memory peak in forward"] == 1500
    assert counters["device memory peak in backward"] == 2000
    assert counters["device memory peak"] == 2700


def test_steps_in_between_are_not_measured(recorder: Recorder, allocator: Allocator) -> None:
    memory = DeviceMemory(allocator.stats, clock=lambda: 0.05)
    step(memory, allocator)
    recorder.counters.clear()
    reads = allocator.reads
    for _ in range(100):
        step(memory, allocator)
    assert allocator.reads == reads
    assert recorder.counters == []


# ---- what the hooks make of it -------------------------------------------------------------------------------------


class Native:
    """What native code does with what it was told to call."""

    def __init__(self) -> None:
        self.listeners: dict[int, Any] = {}

    def listen(self, which: int, function: Any) -> None:
        self.listeners[which] = function

    def step(self) -> None:
        """A step that opens the session in its backward pass."""
        self.edge("begin", "forward")
        opening = self.listeners.pop(_native.ON_OPEN, None)
        if opening is not None:
            opening(True)
        self.edge("backward", "optimizer", "step")

    def edge(self, *names: str) -> None:
        for name in names:
            function = self.listeners.get(_native.ON_EDGE)
            if function is not None:
                function(name)


@pytest.fixture
def native(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Native]:
    native = Native()
    monkeypatch.setattr(_native, "listen", native.listen)
    monkeypatch.setattr(_native, "cuda", lambda *_: 1)
    monkeypatch.setattr(loop, "on_open", [])
    loop.install()
    yield native
    patching.on_uninstall.clear()


def torch_with(allocator: Allocator | None, **broken: Any) -> Any:
    """A torch with the GPU of this allocator, or with none."""

    def no_gpu(*_: Any) -> Any:
        raise AssertionError("asked without a GPU")

    cuda = SimpleNamespace(
        is_initialized=lambda: allocator is not None,
        current_device=lambda: 0 if allocator else no_gpu(),
        get_device_properties=lambda _: SimpleNamespace(total_memory=80_000),
    )
    stats = allocator.stats if allocator else no_gpu
    c = SimpleNamespace(_cuda_memoryStats=stats, _cuda_getCurrentRawStream=lambda _: 0)
    vars(c).update(broken)
    return SimpleNamespace(cuda=cuda, _C=c)


def open_with(torch: Any) -> None:
    loop.on_open.append(lambda: pytorch._observe_device(torch))


def test_a_training_on_a_gpu_tells_its_memory(native: Native, recorder: Recorder, allocator: Allocator) -> None:
    open_with(torch_with(allocator))
    native.step()
    counters = dict(recorder.counters)
    assert counters["device memory total"] == 80_000
    assert counters["device memory used"] == 1000
    assert {name.removeprefix("device memory peak in ") for name in counters if " in " in name} == {
        "backward",
        "optimizer",
    }
    assert "device memory peaks" in recorder.facts


def test_without_a_gpu_nothing_is_asked(native: Native, recorder: Recorder) -> None:
    open_with(torch_with(None))
    native.step()
    native.step()
    assert native.listeners.get(_native.ON_EDGE) is None
    assert recorder.counters == []


def test_a_torch_that_tells_something_else_is_asked_once(native: Native, recorder: Recorder) -> None:
    asked: list[int] = []

    def other(device: int) -> Stats:
        asked.append(device)
        return {}

    open_with(torch_with(Allocator(), _cuda_memoryStats=other))
    native.step()
    native.step()
    assert asked == [0]
    assert "hook switched off: device memory" in recorder.facts

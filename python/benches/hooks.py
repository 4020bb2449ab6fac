"""What the hooks of one step cost by themselves: their calls in turn, around functions that do nothing.

usage: GNNTOP_NATIVE=target/release/libgnntop_python.so PYTHONPATH=python python python/benches/hooks.py

Printed for each hook, less what it is around: the first percentile of many calls, which other programs on the machine
hardly change; and the median. In a training the hooks' code is not in the processor's caches: see scripts/python-cost.py.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import torch
import torch.optim.optimizer
import torch.utils.data.dataloader
from torch import nn

from gnntop import _native, hooks

ROUNDS = 6000
BATCH = [torch.zeros(64, 32), torch.zeros(64, 1)]


class Nothing(nn.Module):
    """A root that has a parameter and computes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, batch: Any) -> Any:
        """Gives what it is given."""
        return batch


class Batches(torch.utils.data.dataloader._BaseDataLoaderIter):
    """A loader's iterator without a loader."""

    def __init__(self) -> None:
        self._num_workers = 0


def took_ns(call: Callable[[], object]) -> int:
    """How long one call takes."""
    begin = perf_counter_ns()
    call()
    return perf_counter_ns() - begin


def main() -> None:
    """Hooks functions that do nothing, and measures them."""
    torch.utils.data.dataloader._BaseDataLoaderIter.__next__ = lambda _: BATCH  # type: ignore[method-assign]
    torch.autograd.backward = lambda *_: None
    hooks.install()
    module, batches, loss = Nothing(), Batches(), torch.zeros(1)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    around_step = [
        *torch.optim.optimizer._global_optimizer_pre_hooks.values(),
        *torch.optim.optimizer._global_optimizer_post_hooks.values(),
    ]
    calls: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "fetch": (lambda: next(batches), lambda: BATCH),
        "forward": (lambda: module(BATCH), lambda: nn.Module._call_impl(module, BATCH)),
        "backward": (lambda: torch.autograd.backward(loss), lambda: None),
        "optimizer": (lambda: [hook(optimizer, (optimizer,), {}) for hook in around_step], lambda: [None, None]),
    }
    times: dict[str, list[int]] = {name: [] for name in calls}
    for turn in range(ROUNDS):
        for name, (hooked, bare) in calls.items():
            times[name].append(took_ns(hooked) - min(took_ns(bare), took_ns(bare)))
        if turn % 500 == 0:
            time.sleep(0.05)  # the ring is drained
    assert _native.status() == _native.PUBLISHING, _native.warning() or _native.problem
    for name, taken in [*times.items(), ("all", [sum(step) for step in zip(*times.values(), strict=True)])]:
        low, *_ = statistics.quantiles(taken, n=100)
        print(f"{name:10} {low / 1000:5.2f} us (1st percentile), {statistics.median(taken) / 1000:5.2f} us (median)")
    _native.close()


if __name__ == "__main__":
    main()

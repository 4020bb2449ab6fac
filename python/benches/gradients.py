"""What one look at the gradients takes, once a second: of a model with 400 parameters whose caches a product of matrices
has emptied. Prints the median, and what measuring the cost of denormal numbers takes, in microseconds.

PYTHONPATH=python GNNTOP_NATIVE=target/release/libgnntop_python.so python python/benches/gradients.py
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter_ns

import torch

from gnntop import _native
from gnntop.hooks import gradients

LOOKS = 300


def microseconds(call: Callable[[], object]) -> float:
    """The median time of a call, each after work that takes the caches."""
    large = torch.randn(1000, 1000)
    times = []
    for _ in range(LOOKS):
        _ = large @ large
        begin = perf_counter_ns()
        call()
        times.append(perf_counter_ns() - begin)
    return median(times) / 1e3


model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(200)))
optimizer = torch.optim.Adam(model.parameters())
model(torch.randn(8, 256)).mean().backward()
looking = gradients.Gradients(torch)
print(f"a look {microseconds(lambda: looking.look(optimizer)):.0f} us")
print(f"the cost of denormals {microseconds(_native.denormal_cost):.0f} us")

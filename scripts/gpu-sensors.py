#!/usr/bin/env python3
"""How NVML measures this GPU's power and energy: how often its values change, what a read costs, how much it sees.

usage: gpu-sensors.py [--seconds 3]

Needs nvidia-ml-py and PyTorch with CUDA, and a GPU that nothing else uses. Printed, with the GPU idle and busy:

    period      time between changes of a value, median and quartiles, read without a pause
    call        what one read takes, p50 and p99
    bursts      mean power by the energy counter, of turns in which the GPU works for a quarter of the counter's period
                and then rests. Each turn begins at another moment. A counter that sees all of the time shows nearly
                the same power in all of them; one that sees a part of it shows more in some than in others
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable

import pynvml
import torch

INSTANT, ENERGY = 186, 83


def main() -> None:
    """Measures the first GPU."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=3)
    seconds = parser.parse_args().seconds
    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    print(pynvml.nvmlDeviceGetName(gpu), "driver", pynvml.nvmlSystemGetDriverVersion())
    values: dict[str, Callable[[], int]] = {
        "total energy, mJ": lambda: int(pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)),
        "field 186, mW": lambda: int(pynvml.nvmlDeviceGetFieldValues(gpu, [INSTANT])[0].value.uiVal),
        "power usage, mW": lambda: int(pynvml.nvmlDeviceGetPowerUsage(gpu)),
        "utilization, %": lambda: int(pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu),
    }
    period_s = 0.1
    for state in ("idle", "busy"):
        with Work(is_on=state == "busy"):
            time.sleep(0.5)
            for name, read in values.items():
                try:
                    changes, calls = watch(read, seconds)
                except pynvml.NVMLError as error:
                    print(f"{state}: {name}: {error}")
                    continue
                print(f"{state}: {name}: changes every {described(changes)}; a read {call_cost(calls)}")
                if state == "busy" and name.startswith("total energy") and changes:
                    period_s = statistics.median(changes)
    bursts(values["total energy, mJ"], period_s)


class Work:
    """Multiplies matrices on the GPU from another thread meanwhile."""

    def __init__(self, is_on: bool) -> None:
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run) if is_on else None

    def run(self) -> None:
        """Until it has ended."""
        matrix = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
        while not self.ended.is_set():
            for _ in range(8):
                matrix @ matrix
            torch.cuda.synchronize()

    def __enter__(self) -> None:
        """Begins."""
        if self.thread:
            self.thread.start()

    def __exit__(self, *_: object) -> None:
        """Ends, after what was queued."""
        self.ended.set()
        if self.thread:
            self.thread.join()


def watch(read: Callable[[], int], seconds: float) -> tuple[list[float], list[float]]:
    """Seconds between changes of a value, and seconds that each read took."""
    changes, calls, last, changed = [], [], read(), 0.0
    begin = time.perf_counter()
    while (now := time.perf_counter()) < begin + seconds:
        value = read()
        calls.append(time.perf_counter() - now)
        if value != last:
            if changed:
                changes.append(now - changed)
            last, changed = value, now
    return changes, calls


def described(changes: list[float]) -> str:
    """Median and quartiles in milliseconds."""
    if len(changes) < 3:
        return f"(it changed {len(changes)} times)"
    low, middle, high = (quarter * 1e3 for quarter in statistics.quantiles(changes, n=4))
    return f"{middle:.1f} ms ({low:.1f} to {high:.1f}, {len(changes)} changes)"


def call_cost(calls: list[float]) -> str:
    """Median and 99th percentile in microseconds."""
    ordered = sorted(calls)
    return f"takes {statistics.median(ordered) * 1e6:.0f} us, p99 {ordered[int(len(ordered) * 0.99)] * 1e6:.0f} us"


def bursts(energy_mj: Callable[[], int], period_s: float, turns: int = 8, length: int = 20) -> None:
    """Prints the mean power of each turn of bursts."""
    matrix = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    powers = []
    for turn in range(turns):
        time.sleep(period_s * turn / turns)
        begin, before = time.perf_counter(), energy_mj()
        for number in range(length):
            start = begin + number * period_s
            while time.perf_counter() < start + period_s / 4:
                matrix @ matrix
                torch.cuda.synchronize()
            time.sleep(max(0.0, start + period_s - time.perf_counter()))
        powers.append((energy_mj() - before) / (time.perf_counter() - begin) / 1e3)
    mean = statistics.mean(powers)
    listed = " ".join(f"{power:.0f}" for power in powers)
    spread = statistics.pstdev(powers) / mean * 100
    print(f"bursts of a quarter of {period_s * 1e3:.0f} ms: {mean:.0f} W, spread {spread:.0f} % ({listed})")


if __name__ == "__main__":
    main()

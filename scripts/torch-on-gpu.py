#!/usr/bin/env python3
"""A PyTorch training on a GPU, for trying gnntop on it; prints one JSON line.

usage: torch-on-gpu.py WAY [--steps 300] [--width 2048] [--layers 6] [--batch 4096] [--events] [--device cuda]

WAY is
    clean      what a loop should be: two loader workers, pinned memory, one read of the loss in ten steps
    amp        the same in float16 with a gradient scaler
    compile    the same by torch.compile
    reads      the loss and every gradient's norm are read in each step
    slow       the loader takes 100 ms for a batch
    graph      forward and backward are one CUDA graph
    streams    on a stream of its own
    inference  the model is only run

The line has a hash of all losses and parameters, which must not depend on gnntop, and with --events the median time of
each phase by CUDA events of the program's own, to be compared with `gnntop report`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import count, pairwise
from typing import Any

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch
from torch import nn
from torch.nn.functional import cross_entropy

WAYS = ["clean", "amp", "compile", "reads", "slow", "graph", "streams", "inference"]
Batch = tuple[torch.Tensor, torch.Tensor]


def main() -> None:
    """Trains, and prints what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--events", action="store_true")
    parser.add_argument("--device", default="cuda", help="cpu has no ways graph and streams, and no events")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    widths = [256] + [options.width] * (options.layers + 1)
    layers = [layer for pair in pairwise(widths) for layer in (nn.Linear(*pair), nn.GELU())]
    model = nn.Sequential(*layers, nn.Linear(options.width, 10)).to(options.device)
    loader = torch.utils.data.DataLoader(
        Batches(options.batch, 0.1 if options.way == "slow" else 0.0),
        batch_size=None,
        num_workers=1 if options.way == "slow" else 2,
        pin_memory=True,
        persistent_workers=True,
    )
    begin = time.perf_counter()
    if options.way == "inference":
        results = list(inferred(model, loader, options.steps, options.device))
        events: dict[str, float] = {}
    else:
        training = Training(model, options.way, options.events, options.device)
        steps = training.graphed(loader) if options.way == "graph" else training.eager(loader)
        results = [loss for loss, _ in zip(steps, range(options.steps), strict=False)]
        events = training.event_times()
    wait()
    seconds = time.perf_counter() - begin
    found = hashlib.sha256(torch.stack(results).cpu().numpy().tobytes())
    for parameter in model.parameters():
        found.update(parameter.detach().cpu().numpy().tobytes())
    line = {"way": options.way, "steps": len(results), "hash": found.hexdigest()[:16], "last": float(results[-1])}
    print(json.dumps(line | {"steps_per_s": round(len(results) / seconds, 2), "events_ms": events}))


class Batches(torch.utils.data.Dataset[Batch]):
    """Eight batches of random numbers, each of which takes some seconds to get."""

    def __init__(self, size: int, seconds: float) -> None:
        self.features = torch.randn(8, size, 256)
        self.labels = torch.randint(0, 10, (8, size))
        self.seconds = seconds

    def __len__(self) -> int:
        """Batches of an epoch."""
        return 8

    def __getitem__(self, at: int) -> Batch:
        """Features ``[size, 256]`` and labels ``[size]``."""
        time.sleep(self.seconds)
        return self.features[at], self.labels[at]


def wait() -> None:
    """Until the GPU has done what it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def endless(loader: Any) -> Iterator[Batch]:
    """Epoch after epoch."""
    while True:
        yield from loader


def inferred(model: nn.Module, loader: Any, steps: int, device: str) -> Iterator[torch.Tensor]:
    """Runs the model over batches."""
    model.eval()
    for (features, _), _ in zip(endless(loader), range(steps), strict=False):
        with torch.no_grad():
            yield model(features.to(device, non_blocking=True)).sum()


class Training:
    """A model that is trained, a step at a time; each gives its loss."""

    def __init__(self, model: nn.Module, way: str, has_events: bool, device: str) -> None:
        self.model, self.way, self.has_events, self.device = model, way, has_events, device
        self.run = torch.compile(model) if way == "compile" else model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
        self.scaler = torch.amp.GradScaler(device, enabled=way == "amp")
        self.stream = torch.cuda.Stream() if way == "streams" else None
        self.events: list[list[torch.cuda.Event]] = []

    def eager(self, loader: Any) -> Iterator[torch.Tensor]:
        """Operation by operation."""
        for step, batch in zip(count(), endless(loader), strict=False):
            with torch.cuda.stream(self.stream) if self.stream else nullcontext():
                loss = self.step(*(tensor.to(self.device, non_blocking=True) for tensor in batch))
            if self.way == "reads":
                for parameter in self.model.parameters():
                    float(parameter.grad.norm() if parameter.grad is not None else 0.0)
            if self.way == "reads" or step % 10 == 0:
                loss.item()
            yield loss.detach()

    def step(self, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """One step."""
        self.optimizer.zero_grad(set_to_none=True)
        events = [self.event()]
        with torch.autocast(self.device, dtype=torch.float16, enabled=self.way == "amp"):
            output = self.run(features)
            events.append(self.event())
            loss = cross_entropy(output, labels)
        events.append(self.event())
        self.scaler.scale(loss).backward()
        events.append(self.event())
        self.scaler.step(self.optimizer)
        self.scaler.update()
        events.append(self.event())
        self.events.append([event for event in events if event])
        return loss

    def event(self) -> Any:
        """An event on the current stream, if asked for."""
        if not self.has_events or self.device == "cpu":
            return None
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def event_times(self) -> dict[str, float]:
        """Median milliseconds of each phase, without the first steps."""
        wait()
        later = [events for events in self.events[20:] if events]
        places = {"forward": 0, "loss": 1, "backward": 2, "optimizer": 3}
        medians = {
            phase: statistics.median(events[at].elapsed_time(events[at + 1]) for events in later)
            for phase, at in places.items()
            if later
        }
        return {phase: round(ms, 4) for phase, ms in medians.items()}

    def graphed(self, loader: Any) -> Iterator[torch.Tensor]:
        """Forward and backward by one launch."""
        batches = endless(loader)
        features, labels = (tensor.to(self.device) for tensor in next(batches))
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.optimizer.zero_grad(set_to_none=True)
                cross_entropy(self.model(features), labels).backward()
        torch.cuda.current_stream().wait_stream(side)
        self.optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = cross_entropy(self.model(features), labels)
            loss.backward()
        for step, (new_features, new_labels) in zip(count(), batches, strict=False):
            features.copy_(new_features)
            labels.copy_(new_labels)
            graph.replay()
            self.optimizer.step()
            if step % 10 == 0:
                loss.item()
            yield loss.detach().clone()


if __name__ == "__main__":
    main()

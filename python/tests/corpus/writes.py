"""Files of other programs to import. `table`: a row a step with its wait and its whole time; `spans`: torch.profiler
over a function that calls itself; `loader`: torch.profiler over a loop whose loader is slow. Measured, but for
`copies`: the generated trace of a GPU that copies most of the time."""

import csv
import json
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, default_collate

what, path = sys.argv[1], sys.argv[2]


def collate(samples):
    time.sleep(0.03)
    return default_collate(samples)


def loop(steps, hide=False):
    model = nn.Sequential(nn.Linear(40, 700), nn.ReLU(), nn.Linear(700, 700), nn.ReLU(), nn.Linear(700, 1))
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(TensorDataset(torch.randn(128 * steps, 40)), 128, collate_fn=None if hide else collate)
    for (x,) in loader:
        yield
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        yield


def nested(depth):
    with torch.profiler.record_function("tree"):
        if depth:
            nested(depth - 1)
        torch.randn(160, 160) @ torch.randn(160, 160)


def write_table():
    end, rows = time.time(), []
    times = loop(200)
    for step in range(200):
        begin = end
        next(times)
        got = time.time()
        next(times)
        end = time.time()
        rows.append([step, f"{end:.6f}", f"{(got - begin) * 1e3:.3f}", f"{(end - begin) * 1e3:.3f}"])
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([["step", "timestamp_s", "data_wait_ms", "iter_ms"], *rows])


def write_trace(steps, hide, between):
    kept = torch.profiler.schedule(wait=1, warmup=1, active=steps - 2, repeat=1)
    with torch.profiler.profile(schedule=kept, on_trace_ready=lambda it: it.export_chrome_trace(path)) as profiler:
        halves = loop(steps, hide)
        for _ in halves:
            next(halves)
            between()
            profiler.step()


def write_copies():
    rows = []
    for step in range(60):
        begin = step * 50_000
        spans = [(f"ProfilerStep#{step}", "user_annotation", 1, 0, 50_000)]
        spans += [
            ("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", 7, 2_000, 30_000),
            ("sgemm", "kernel", 7, 34_000, 10_000),
        ]
        for name, kind, track, after, length in spans:
            pid = 0 if kind in ("kernel", "gpu_memcpy") else 1
            rows.append(dict(ph="X", name=name, cat=kind, pid=pid, tid=track, ts=begin + after, dur=length))
            if pid == 0:
                rows[-1]["args"] = {"device": 0, "stream": track}
    with open(path, "w") as file:
        json.dump({"deviceProperties": [{"id": 0, "name": "made up"}], "traceEvents": rows}, file)


torch.manual_seed(0)
torch.set_num_threads(1)
if what == "table":
    write_table()
elif what == "copies":
    write_copies()
else:
    write_trace(40, what == "spans", (lambda: nested(4)) if what == "spans" else (lambda: None))

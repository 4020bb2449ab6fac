"""The trainings that scripts/python-cost.py measures: the first argument says which. Writes the median step to $RESULT."""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter_ns
from typing import Any


def report(times_ns: list[int]) -> None:
    """Leaves the first quarter out: it warms up."""
    kept = times_ns[len(times_ns) // 4 :]
    Path(os.environ["RESULT"]).write_text(json.dumps({"median_us": statistics.median(kept) / 1000}))


def timed(turns: Iterator[Any]) -> list[int]:
    """The times of the turns of a loop."""
    times, last = [], perf_counter_ns()
    for _ in turns:
        now = perf_counter_ns()
        times.append(now - last)
        last = now
    return times


def mlp(trace: Any = None, steps: int = 5000) -> Iterator[None]:
    """Five layers of 64 on batches of 64."""
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(64 * 500, 32), torch.randn(64 * 500, 1))
    loader = DataLoader(data, batch_size=64)
    layers: list[nn.Module] = [nn.Linear(32, 64), nn.ReLU()]
    for _ in range(3):
        layers += [nn.Linear(64, 64), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loss_of = nn.MSELoss()
    for _ in range(steps // len(loader)):
        for x, y in loader:
            with trace(model) if trace else nullcontext():
                optimizer.zero_grad()
                loss_of(model(x), y).backward()
                optimizer.step()
            yield


def mlp_traceml() -> Iterator[None]:
    """The same with the two lines that TraceML needs in a plain loop."""
    import traceml_ai as traceml

    getattr(traceml, "init", lambda: None)()
    return mlp(traceml.trace_step)


def pna(steps: int = 12) -> Iterator[None]:
    """64 layers of PyG's PNA on batches of 128 small graphs."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import global_max_pool
    from torch_geometric.nn.models import PNA

    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    graphs = [
        Data(x=torch.randn(n, 9), edge_index=torch.randint(n, (2, 2 * n)), y=torch.randn(1))
        for n in torch.randint(10, 20, (128 * steps,)).tolist()
    ]
    model = PNA(
        9,
        16,
        64,
        1,
        aggregators=["mean", "min", "max", "std"],
        scalers=["identity", "amplification", "attenuation"],
        deg=torch.tensor([0, 10, 20, 10]),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-6)
    for batch in DataLoader(graphs, batch_size=128):
        optimizer.zero_grad()
        out = global_max_pool(model(batch.x, batch.edge_index), batch.batch)
        torch.nn.functional.l1_loss(out.view(-1), batch.y).backward()
        optimizer.step()
        yield


def gcn(compiled: bool = False, steps: int = 200) -> Iterator[None]:
    """PyG's GCN on one graph with the numbers of Cora."""
    import torch
    from torch_geometric.nn.models import GCN

    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = (torch.rand(2708, 1433) < 0.0127).float()
    edges, y = torch.randint(2708, (2, 10556)), torch.randint(7, (2708,))
    model = GCN(1433, 16, 2, 7)
    run = torch.compile(model) if compiled else model
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(run(x, edges)[:140], y[:140]).backward()
        optimizer.step()
        yield


def span() -> list[int]:
    """A thousand empty spans a turn, in a program that publishes: nanoseconds of one, given as microseconds of 1,000."""
    try:
        import gnntop
    except ImportError:
        return [0, 0, 0, 0]
    gnntop.start("span")
    times = []
    for _ in range(100):
        begin = perf_counter_ns()
        for _ in range(1000):
            with gnntop.span("nothing"):
                pass
        times.append((perf_counter_ns() - begin) // 1000 * 1000)
    return [time // 1000 for time in times]


if __name__ == "__main__":
    which = sys.argv[1]
    turns = {
        "mlp": mlp,
        "mlp-traceml": mlp_traceml,
        "pna": pna,
        "gcn": gcn,
        "gcn-compiled": lambda: gcn(compiled=True),
    }
    report(span() if which == "span" else timed(turns[which]()))

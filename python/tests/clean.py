"""Ten loops in which nothing is wrong, by the argument: what finds mistakes must find none here."""

import io
import sys
from collections.abc import Callable

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS = 72
BATCH = 128


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))


def batches(steps: int = STEPS, extra: int = 0, **options: object) -> DataLoader:
    """Loads so many batches, and a last one of `extra` samples."""
    size = steps * BATCH + extra
    return DataLoader(TensorDataset(torch.randn(size, 64), torch.randn(size, 1)), batch_size=BATCH, **options)


def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def plain() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for x, y in batches():
        step(model, optimizer, x, y)


def shuffled_adam() -> None:
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in batches(shuffle=True, extra=17):
        step(model, optimizer, x, y)


def reads_loss() -> None:
    """`.item()` in every step: nothing waits for it on a CPU."""
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    losses = []
    for x, y in batches():
        losses.append(step(model, optimizer, x, y).item())


def micro_batches() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for place, (x, y) in enumerate(batches(2 * STEPS)):
        (nn.functional.mse_loss(model(x), y) / 2).backward()
        if place % 2:
            optimizer.step()
            optimizer.zero_grad()


def clips_and_schedules() -> None:
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for x, y in batches():
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()


def evaluates() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for _ in range(3):
        model.train()
        for x, y in batches(STEPS // 3):
            step(model, optimizer, x, y)
        model.eval()
        with torch.no_grad():
            for x, _ in batches(3):
                model(x)


def saves_once() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for x, y in batches():
        step(model, optimizer, x, y)
    torch.save(model.state_dict(), io.BytesIO())


def convolves() -> None:
    model = nn.Sequential(
        nn.Conv2d(1, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for x, y in batches():
        step(model, optimizer, x.view(-1, 1, 8, 8), y)


def whole_graph() -> None:
    from torch_geometric.nn.models import GCN

    model = GCN(256, 64, 2, 8)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    x, edges, y = torch.randn(2000, 256), torch.randint(2000, (2, 8000)), torch.randint(8, (2000,))
    for _ in range(STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x, edges), y).backward()
        optimizer.step()


def graphs() -> None:
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader as GraphLoader
    from torch_geometric.nn import GCN, global_mean_pool

    def graph() -> Data:
        nodes = int(torch.randint(30, 60, ()))
        return Data(x=torch.randn(nodes, 64), edge_index=torch.randint(nodes, (2, 4 * nodes)), y=torch.randn(1, 1))

    model = GCN(64, 512, 3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for batch in GraphLoader([graph() for _ in range(32 * STEPS)], batch_size=32):
        optimizer.zero_grad()
        out = global_mean_pool(model(batch.x, batch.edge_index), batch.batch)
        nn.functional.mse_loss(out, batch.y).backward()
        optimizer.step()


LOOPS: list[Callable[[], None]] = [
    plain,
    shuffled_adam,
    reads_loss,
    micro_batches,
    clips_and_schedules,
    evaluates,
    saves_once,
    convolves,
    whole_graph,
    graphs,
]

if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    {loop.__name__: loop for loop in LOOPS}[sys.argv[1]]()

"""The loader's order is worked out again before each epoch, by reading all data."""

from collections.abc import Iterator

import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(1_600, 64), torch.randn(1_600, 1))


class Easiest(Sampler[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(sorted(range(len(data)), key=lambda i: float(data[i][0].sort().values.cumsum(0).norm())))

    def __len__(self) -> int:
        return len(data)


model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
loader = DataLoader(data, batch_size=64, sampler=Easiest())
for _ in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

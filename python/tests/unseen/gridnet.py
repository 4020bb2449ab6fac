"""Message passing on a power grid, with sparse matrices."""
import os

import torch
from torch import nn

torch.manual_seed(41)
torch.set_num_threads(8)

BUSES = 2000


def grid():
    side = torch.arange(BUSES)
    far = torch.randint(0, BUSES, (BUSES * 3,))
    rows = torch.cat([side, side, side.repeat(3)])
    columns = torch.cat([side.roll(1), side.roll(-1), far])
    values = torch.full((len(rows),), 0.2)
    return torch.sparse_coo_tensor(torch.stack([rows, columns]), values, (BUSES, BUSES)).coalesce().to_sparse_csr()


class Flow(nn.Module):
    def __init__(self, adjacency, dim=32, layers=3):
        super().__init__()
        self.adjacency = adjacency
        self.enter = nn.Linear(6, dim)
        self.mix = nn.ModuleList(nn.Linear(2 * dim, dim) for _ in range(layers))
        self.leave = nn.Linear(dim, 2)

    def forward(self, x):
        h = torch.relu(self.enter(x))
        for layer in self.mix:
            h = h + torch.relu(layer(torch.cat([h, self.adjacency @ h], 1)))
        return self.leave(h)


model = Flow(grid())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(500):
    injection = torch.randn(BUSES, 6)
    voltage = torch.stack([injection.sum(1), injection.prod(1)], 1)
    loss = nn.functional.mse_loss(model(injection), voltage)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(os.getpid() > 0, step, float(loss), flush=True)

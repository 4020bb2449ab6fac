"""A graph network on one graph without a loader: forward, loss, backward, step, evaluation in each epoch."""

import torch
from torch import nn


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(32, 16), nn.Linear(16, 4)

    def forward(self, x, adjacency):
        return self.two(adjacency @ torch.relu(self.one(adjacency @ x)))


torch.manual_seed(0)
torch.set_num_threads(1)
x, adjacency, y = torch.randn(300, 32), torch.rand(300, 300) / 300, torch.randint(4, (300,))
model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(40):
    model.train()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x, adjacency), y)
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        correct = (model(x, adjacency).argmax(-1) == y).float().mean()
    print(loss.item().hex(), correct.item())

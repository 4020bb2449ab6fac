"""Large tensors that come and go: the system gives and takes their pages in every step. `attention` and `messages`.
Repaired by variables of the environment alone."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
if sys.argv[1] == "attention":

    class Scores(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key = nn.Linear(16, 16), nn.Linear(16, 16)

        def forward(self, x):
            scores = self.query(x) @ self.key(x).transpose(1, 2)
            return (scores.relu() + scores.abs()).mean((1, 2))

    model, inputs = Scores(), (torch.randn(4, 1024, 16),)
else:
    from torch_geometric.nn import GATv2Conv

    model, inputs = GATv2Conv(16, 8, heads=4), (torch.randn(2000, 16), torch.randint(2000, (2, 60_000)))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(160):
    optimizer.zero_grad()
    model(*inputs).square().mean().backward()
    optimizer.step()

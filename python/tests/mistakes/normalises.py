"""A graph that stays the same is normalised in each forward pass."""

import torch
from torch import nn
from torch_geometric.nn import GCNConv

torch.manual_seed(0)
torch.set_num_threads(1)
NODES = 4000
edges = torch.randint(0, NODES, (2, 60_000))
x, y = torch.randn(NODES, 16), torch.randint(0, 5, (NODES,))
first, second = GCNConv(16, 8), GCNConv(8, 5)
model = nn.ModuleList([first, second])
optimizer = torch.optim.Adam(model.parameters())
for _ in range(200):
    optimizer.zero_grad()
    hidden = first(x, edges).relu()
    nn.functional.cross_entropy(second(hidden, edges), y).backward()
    optimizer.step()

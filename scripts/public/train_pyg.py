"""PyTorch Geometric: its `FakeDataset` of graphs and a GCN, as in its tutorial on mini-batches."""

import counting
import torch
from torch.nn import functional
from torch_geometric.datasets import FakeDataset
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCN, global_mean_pool

counting.start()
data = FakeDataset(num_graphs=128, avg_num_nodes=50, num_classes=4)
model = GCN(data.num_features, 32, num_layers=2, out_channels=4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _epoch in range(4):
    total = 0.0
    for batch in DataLoader(data, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        out = global_mean_pool(model(batch.x, batch.edge_index), batch.batch)
        loss = functional.cross_entropy(out, batch.y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(total)

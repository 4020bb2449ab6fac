"""What is the same for a graph in every epoch is computed again whenever it is loaded."""

import torch
from torch import nn
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GraphConv, global_mean_pool
from torch_geometric.transforms import Compose, LocalDegreeProfile, ToUndirected

torch.manual_seed(0)
torch.set_num_threads(1)


class Rings(InMemoryDataset):
    def __init__(self, transform):
        super().__init__(None, transform)
        ring = torch.arange(24)
        edges = torch.stack([ring, ring.roll(1)])
        graphs = [Data(x=torch.randn(24, 4), edge_index=edges, y=torch.randn(1)) for _ in range(64)]
        self.data, self.slices = self.collate(graphs)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.out = GraphConv(9, 16), nn.Linear(16, 1)

    def forward(self, batch):
        return self.out(global_mean_pool(self.conv(batch.x, batch.edge_index).relu(), batch.batch))


loader = DataLoader(Rings(Compose([ToUndirected(), LocalDegreeProfile()])), batch_size=16)
model = Net()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(40):
    for batch in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(batch).squeeze(-1), batch.y).backward()
        optimizer.step()

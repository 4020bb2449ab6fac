"""PyG: batches of small graphs, a graph network with pooling."""

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_add_pool

torch.manual_seed(0)
torch.set_num_threads(1)


def graph(nodes):
    edges = torch.randint(nodes, (2, 3 * nodes))
    return Data(x=torch.randn(nodes, 8), edge_index=edges, y=torch.randn(1, 1))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = GINConv(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32)))
        self.head = nn.Linear(32, 1)

    def forward(self, data):
        x = self.convolution(data.x, data.edge_index).relu()
        return self.head(global_add_pool(x, data.batch))


graphs = [graph(5 + i % 7) for i in range(320)]
loader = DataLoader(graphs, batch_size=32, shuffle=True)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(2):
    for batch in loader:
        batch = batch.to("cpu")
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model(batch), batch.y)
        loss.backward()
        optimizer.step()
        print(loss.item().hex())

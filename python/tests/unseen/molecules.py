"""Energies of small molecules with PyG."""
import gc
import random

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINEConv, global_add_pool

torch.manual_seed(19)
random.seed(19)
torch.set_num_threads(1)


def conformers(n):
    return [{"name": f"m{i}", "atoms": [{"z": random.choice([1, 6, 7, 8]), "q": [random.random()]} for _ in range(18)]} for i in range(n)]


def graph(record):
    z = torch.tensor([a["z"] for a in record["atoms"]])
    n = len(z)
    ring = torch.arange(n)
    edge_index = torch.stack([torch.cat([ring, ring.roll(1)]), torch.cat([ring.roll(1), ring])])
    return Data(z=z, edge_index=edge_index, edge_attr=torch.randn(2 * n, 16), y=torch.randn(1, 1))


def mlp(a, b):
    return torch.nn.Sequential(torch.nn.Linear(a, b), torch.nn.SiLU(), torch.nn.Linear(b, b))


class Net(torch.nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.embed = torch.nn.Embedding(10, dim)
        self.convs = torch.nn.ModuleList(GINEConv(mlp(dim, dim), edge_dim=16) for _ in range(3))
        self.read = torch.nn.Linear(dim, 1)

    def forward(self, batch):
        x = self.embed(batch.z)
        for conv in self.convs:
            x = x + conv(x, batch.edge_index, batch.edge_attr)
        return self.read(global_add_pool(x, batch.batch))


class Loop:
    def __init__(self, records):
        self.records = records
        self.graphs = [graph(r) for r in records[:32 * 60]]
        self.net = Net()
        self.optimizer = torch.optim.Adam(self.net.parameters(), 1e-3)

    def tidy(self):
        gc.collect()

    def epoch(self):
        total = 0.0
        for i, batch in enumerate(DataLoader(self.graphs, batch_size=32, shuffle=True)):
            self.optimizer.zero_grad()
            loss = torch.nn.functional.l1_loss(self.net(batch), batch.y)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
            if i % 10 == 9:
                self.tidy()
        return total


loop = Loop(conformers(2000))
for i in range(11):
    print(i, loop.epoch(), flush=True)

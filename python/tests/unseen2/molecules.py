"""Regression of a property of random molecule-like graphs with GINE, in PyTorch Geometric."""
import copy

import torch
from torch import nn
from torch_geometric import seed_everything
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINEConv, global_add_pool

ATOMS, BONDS = 8, 4


def make_molecule(generator):
    """A random tree with some rings; the property counts kinds of bonds between kinds of atoms."""
    n = int(torch.randint(14, 30, (1,), generator=generator))
    atoms = torch.randint(ATOMS, (n,), generator=generator)
    parents = (torch.rand(n - 1, generator=generator) * torch.arange(1, n)).long()
    rings = torch.randint(n, (2, 3), generator=generator)
    edges = torch.cat([torch.stack([torch.arange(1, n), parents]), rings], 1)
    bonds = torch.randint(BONDS, (edges.shape[1],), generator=generator)
    y = ((atoms[edges[0]] + atoms[edges[1]] + bonds) % 3 == 0).float().sum() / n
    return Data(x=atoms, edge_index=torch.cat([edges, edges.flip(0)], 1), edge_attr=bonds.repeat(2), y=y.view(1))


class Network(nn.Module):
    def __init__(self, width=64, layers=4):
        super().__init__()
        self.atom = nn.Embedding(ATOMS, width)
        self.bonds = nn.ModuleList(nn.Embedding(BONDS, width) for _ in range(layers))
        self.convs = nn.ModuleList(
            GINEConv(nn.Sequential(nn.Linear(width, 2 * width), nn.BatchNorm1d(2 * width), nn.ReLU(), nn.Linear(2 * width, width)))
            for _ in range(layers)
        )
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, data):
        x = self.atom(data.x)
        for conv, bond in zip(self.convs, self.bonds):
            x = x + torch.relu(conv(x, data.edge_index, bond(data.edge_attr)))
        return self.head(global_add_pool(x, data.batch) / 20)[:, 0]


def train_epoch(model, loader, optimizer):
    model.train()
    total = torch.zeros(())
    for data in loader:
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model(data), data.y)
        loss.backward()
        optimizer.step()
        total += loss.detach() * data.num_graphs
    return float(total) / len(loader.dataset)


@torch.no_grad()
def test(model, loader):
    model.eval()
    return float(sum((model(data) - data.y).abs().sum() for data in loader)) / len(loader.dataset)


def main():
    seed_everything(9)
    generator = torch.Generator().manual_seed(9)
    graphs = [make_molecule(generator) for _ in range(5600)]
    train = DataLoader(graphs[:4800], batch_size=64, shuffle=True, drop_last=True)
    valid, final = DataLoader(graphs[4800:5200], batch_size=200), DataLoader(graphs[5200:], batch_size=200)
    model = Network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
    best, state = float("inf"), None
    for epoch in range(16):
        loss = train_epoch(model, train, optimizer)
        error = test(model, valid)
        schedule.step(error)
        if error < best:
            best, state = error, copy.deepcopy(model.state_dict())
        print(f"epoch {epoch} loss {loss:.4f} validation {error:.4f}", flush=True)
    model.load_state_dict(state)
    print(f"test {test(model, final):.4f}")


if __name__ == "__main__":
    main()

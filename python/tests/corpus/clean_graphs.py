"""Ordinary loops over graphs, with no mistake in them; the argument says which one to run."""

import sys

import torch
from torch import nn
from torch.nn import functional
from torch_geometric import nn as layers
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader


def graph(nodes, edges, features, classes=7):
    return Data(
        x=torch.randn(nodes, features),
        edge_index=torch.randint(nodes, (2, edges)),
        edge_type=torch.randint(4, (edges,)),
        y=torch.randint(classes, (nodes,)),
        pos=torch.rand(nodes, 3),
    )


def fit(model, optimizer, loss_of, data):
    for batch in data:
        optimizer.zero_grad()
        loss_of(batch).backward()
        optimizer.step()


def attends():
    whole = graph(2000, 9000, 128)
    model = layers.GAT(128, 64, 2, 7, heads=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    fit(model, optimizer, lambda it: functional.cross_entropy(model(it.x, it.edge_index), it.y), [whole] * 120)


def relates():
    whole = graph(1500, 6000, 64)
    model = nn.ModuleList([layers.RGCNConv(64, 64, 4), layers.RGCNConv(64, 7, 4)])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def loss_of(it):
        z = model[0](it.x, it.edge_index, it.edge_type).relu()
        return functional.cross_entropy(model[1](z, it.edge_index, it.edge_type), it.y)

    fit(model, optimizer, loss_of, [whole] * 120)


def isomorphic():
    """Small graphs in batches."""
    graphs = [graph(160, 640, 32) for _ in range(6 * 130)]
    model = layers.GIN(32, 256, 3, 7)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def loss_of(it):
        return functional.cross_entropy(layers.global_add_pool(model(it.x, it.edge_index), it.batch), it.y[it.ptr[:-1]])

    fit(model, optimizer, loss_of, DataLoader(graphs, batch_size=6, shuffle=True))


def samples_inside():
    """Negative links are drawn in the loss, as a part of it."""
    from torch_geometric.utils import negative_sampling

    whole = graph(1500, 5000, 96)
    model = layers.GAE(layers.GraphSAGE(96, 128, 2, 64))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def loss_of(it):
        z = model.encode(it.x, it.edge_index)
        return model.recon_loss(z, it.edge_index, negative_sampling(it.edge_index, 1500, 5000))

    fit(model, optimizer, loss_of, [whole] * 130)


def forces():
    """Atoms: energies, and forces as their gradients."""
    atoms = graph(300, 2400, 8)
    model = nn.Sequential(nn.Linear(17, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU(), nn.Linear(256, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(120):
        place = atoms.pos.clone().requires_grad_()
        one, two = atoms.edge_index
        apart = (place[one] - place[two]).norm(dim=1, keepdim=True)
        energy = model(torch.cat([atoms.x[one], atoms.x[two], apart], 1)).sum()
        (force,) = torch.autograd.grad(energy, place, create_graph=True)
        optimizer.zero_grad()
        (energy.square() / 1e4 + force.square().mean()).backward()
        optimizer.step()


def by_dgl():
    import dgl
    from dgl.nn import SAGEConv

    g = dgl.graph((torch.randint(3000, (15_000,)), torch.randint(3000, (15_000,))), num_nodes=3000)
    x, y = torch.randn(3000, 100), torch.randint(5, (3000,))
    model = nn.ModuleList([SAGEConv(100, 128, "mean"), SAGEConv(128, 5, "mean")])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(120):
        optimizer.zero_grad()
        functional.cross_entropy(model[1](g, model[0](g, x).relu()), y).backward()
        optimizer.step()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    globals()[sys.argv[1]]()

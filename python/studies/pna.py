"""The PNA study with PyTorch Geometric itself: 64 layers on batches of generated molecules, with Python's collector on,
off, or called by hand after each epoch. Knows nothing of gnntop.
"""

import argparse
import gc

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import global_max_pool
from torch_geometric.nn.models import PNA
from torch_geometric.utils import degree


def molecule(generator: torch.Generator) -> Data:
    """A random tree with a few rings: about as many atoms and bonds as a molecule of PCQM4Mv2."""
    atoms = int(torch.randint(8, 21, (1,), generator=generator))
    parents = [int(torch.randint(max(0, a - 3), a, (1,), generator=generator)) for a in range(1, atoms)]
    bonds = [*zip(range(1, atoms), parents, strict=True), (0, atoms - 1)]
    edges = torch.tensor([*bonds, *((b, a) for a, b in bonds)]).t().contiguous()
    x = torch.rand(atoms, 9, generator=generator)
    return Data(x=x, edge_index=edges, y=x.sum().view(1))


def main() -> None:
    """Trains as the options say and prints the loss of each epoch."""
    parser = argparse.ArgumentParser()
    for name, default in dict(seed=0, graphs=4096, batch_size=512, layers=64, hidden=64, epochs=3, workers=0).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    parser.add_argument("--gc", choices=["on", "off", "manual"], default="on")
    a = parser.parse_args()
    torch.manual_seed(a.seed)
    torch.set_flush_denormal(True)
    generator = torch.Generator().manual_seed(a.seed)
    graphs = [molecule(generator) for _ in range(a.graphs)]
    degrees = sum(torch.bincount(degree(g.edge_index[1], g.num_nodes, dtype=torch.long), minlength=10) for g in graphs)
    aggregators, scalers = ["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"]
    model = PNA(9, a.hidden, a.layers, 1, aggregators=aggregators, scalers=scalers, deg=degrees)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-6)
    loader = DataLoader(graphs, batch_size=a.batch_size, shuffle=True, num_workers=a.workers)
    if a.gc != "on":
        gc.disable()
    for epoch in range(a.epochs):
        total = 0.0
        for batch in loader:
            optimizer.zero_grad()
            out = global_max_pool(model(batch.x, batch.edge_index), batch.batch).view(-1)
            loss = torch.nn.functional.l1_loss(out, batch.y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        if a.gc == "manual":
            gc.collect()
        print(f"epoch {epoch}: {total / len(loader):.6f}", flush=True)


if __name__ == "__main__":
    main()

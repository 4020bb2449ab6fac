"""The Cora study's GCN with PyTorch Geometric itself: 1433-16-7, full batch, on a graph with Cora's numbers, as it is
or compiled. Knows nothing of gnntop.
"""

import argparse

import torch
from torch_geometric.nn.models import GCN

NODES, FEATURES, EDGES, CLASSES, LABELLED = 2708, 1433, 5278, 7, 140


def main() -> None:
    """Trains as the options say and prints the last loss."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--compile", choices=["off", "on"], default="off")
    a = parser.parse_args()
    torch.manual_seed(a.seed)
    x = (torch.rand(NODES, FEATURES) < 0.0127).float()
    ends = torch.randint(NODES, (2, EDGES))
    edges = torch.cat([ends, ends.flip(0)], dim=1)
    y = torch.randint(CLASSES, (NODES,))
    model = GCN(FEATURES, 16, 2, CLASSES)
    if a.compile == "on":
        model.compile()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(a.epochs):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x, edges)[:LABELLED], y[:LABELLED])
        loss.backward()
        optimizer.step()
    print(f"loss after {a.epochs} epochs: {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    main()

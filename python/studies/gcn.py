"""The Cora study with PyTorch Geometric itself: a GCN on one graph of the size of Cora, eager or compiled.

With `--mode gnntop` it becomes gnntop's own training of the same model, for comparison.
"""

import argparse
import os

NODES, EDGES, WORDS, HIDDEN, CLASSES, TRAINING = 2708, 10556, 1433, 16, 7, 140


def main() -> None:
    """Trains as the options say and prints the loss of each tenth epoch."""
    parser = argparse.ArgumentParser()
    for name, default in dict(seed=0, epochs=200, threads=1).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--mode", choices=["eager", "compiled", "gnntop"], default="eager")
    a = parser.parse_args()
    if a.mode == "gnntop":
        options = f"--recipe study --mode full --runs 1 --epochs {a.epochs} --seed {a.seed}"
        os.execlp("gnntop", "gnntop", "train", "gcn", *options.split())
    train(a)


def train(a: argparse.Namespace) -> None:
    """Trains with PyG."""
    import torch
    from torch_geometric.nn.models import GCN

    torch.manual_seed(a.seed)
    torch.set_num_threads(a.threads)
    x = (torch.rand(NODES, WORDS) < 0.0127).float()
    edges, y = torch.randint(NODES, (2, EDGES)), torch.randint(CLASSES, (NODES,))
    model = GCN(WORDS, HIDDEN, 2, CLASSES)
    run = torch.compile(model) if a.mode == "compiled" else model
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(a.epochs):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(run(x, edges)[:TRAINING], y[:TRAINING])
        loss.backward()
        optimizer.step()
        if epoch % 10 == 0:
            print(f"epoch {epoch}: {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    main()

"""Density estimation of particle jets with a coupling flow."""
import json
import math
import os
import tempfile
import time

import torch
from torch import nn


def jets(count=40000, width=32):
    gen = torch.Generator().manual_seed(4)
    base = torch.randn(count, width, generator=gen)
    mix = torch.randn(width, width, generator=gen) / math.sqrt(width)
    return torch.tanh(base @ mix) + 0.1 * base


class Coupling(nn.Module):
    def __init__(self, width, hidden, flip):
        super().__init__()
        self.flip = flip
        half = width // 2
        self.net = nn.Sequential(nn.Linear(half, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(),
                                 nn.Linear(hidden, 2 * half))

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        scale, shift = self.net(a).chunk(2, 1)
        scale = torch.tanh(scale)
        b = b * scale.exp() + shift
        return torch.cat([b, a] if self.flip else [a, b], 1), scale.sum(1)


class Flow(nn.Module):
    def __init__(self, width=32, hidden=224, layers=8):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(width, hidden, i % 2 == 1) for i in range(layers))

    def log_likelihood(self, x):
        total = torch.zeros(len(x))
        for layer in self.layers:
            x, logdet = layer(x)
            total = total + logdet
        return total - 0.5 * (x ** 2).sum(1) - 0.5 * x.shape[1] * math.log(2 * math.pi)


class Journal:
    """Keeps what is needed to draw the run afterwards."""

    def __init__(self, folder):
        self.file = open(os.path.join(folder, "journal.jsonl"), "w")

    def write(self, step, loss, model):
        entry = {"step": step, "loss": loss.item(), "weights": {}}
        for name, p in model.named_parameters():
            grad = p.grad
            entry["weights"][name] = {
                "norm": p.norm().item(), "grad": grad.norm().item(),
                "spread": torch.quantile(p.flatten(), torch.tensor([0.05, 0.5, 0.95])).tolist(),
                "histogram": torch.histc(p, 64).tolist(),
                "gradients": torch.histc(grad, 64).tolist()}
        self.file.write(json.dumps(entry) + "\n")
        self.file.flush()


def train(model, data, journal, steps=300, batch=640):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    for step in range(steps):
        rows = torch.randint(0, len(data), (batch,))
        loss = -model.log_likelihood(data[rows]).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        journal.write(step, loss, model)
        if step % 60 == 0:
            print(f"step {step}: {loss.item():.2f} nats")


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        model = Flow()
        began = time.time()
        train(model, jets(), Journal(folder))
        print(f"trained in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()

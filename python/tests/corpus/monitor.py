"""A thread that computes metrics in plain Python while the model trains, and so holds the interpreter. Repaired: a
process does it."""

import multiprocessing
import sys
import threading

import torch
from torch import nn


def count_words(ends):
    counts = {}
    while not ends.is_set():
        for k in range(20_000):
            counts[k % 977] = counts.get(k % 977, 0) + k


class Deep(nn.Module):
    """Many small layers: the interpreter is wanted often."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(48, 48) for _ in range(16))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return x


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if "repaired" in sys.argv:
        ends = multiprocessing.get_context("fork").Event()
        worker = multiprocessing.get_context("fork").Process(target=count_words, args=(ends,))
    else:
        ends = threading.Event()
        worker = threading.Thread(target=count_words, args=(ends,))
    worker.start()
    model = Deep()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    x = torch.randn(768, 48)
    for _ in range(700 if "repaired" in sys.argv else 60):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    ends.set()
    worker.join()

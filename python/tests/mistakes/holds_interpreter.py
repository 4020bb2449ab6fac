"""A thread of the program computes in Python all the time: the training gets the interpreter only from time to time."""

import threading
import time

import torch
from torch import nn


def count_words():
    words = {}
    while not done.is_set():
        for word in ("graph", "node", "edge") * 1000:
            words[word] = words.get(word, 0) + 1


torch.manual_seed(0)
torch.set_num_threads(1)
done = threading.Event()
threading.Thread(target=count_words).start()
model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
end = time.monotonic() + 4
while time.monotonic() < end:
    optimizer.zero_grad()
    model(torch.randn(64, 64)).square().mean().backward()
    optimizer.step()
done.set()

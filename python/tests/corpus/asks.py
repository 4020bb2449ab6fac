"""A forward pass that mostly waits. `network`: asks another process for a number; `locked`: waits for a lock that
another thread holds while it sleeps. Repaired: asked once; another lock. `faults` sleeps, and touches new pages
beside it; `forks`: a process is started in each step, by one of much memory."""

import contextlib
import mmap
import multiprocessing
import os
import sys
import threading
import time

import torch
from torch import nn

what, repaired = sys.argv[1], "repaired" in sys.argv
lock, ends = threading.Lock(), threading.Event()


def answer(connection):
    """As a service that is far away does."""
    with contextlib.suppress(EOFError):
        while True:
            question = connection.recv()
            time.sleep(0.012)
            connection.send(question / 2)


def hold_often():
    while not ends.is_set():
        with contextlib.nullcontext() if repaired else lock:
            time.sleep(0.015)


def ask_service(x):
    ours.send(float(x))
    return ours.recv()


def wait_for_lock(_x):
    with lock:
        return 0.5


def touch_pages(_x):
    with mmap.mmap(-1, 48 * 4096) as pages:
        pages[::4096] = bytes(48)
    time.sleep(0.015)
    return 0.5


def start_process(_x):
    if os.fork() == 0:
        os._exit(0)
    os.wait()
    return 0.5


HOW = {"network": ask_service, "locked": wait_for_lock, "faults": touch_pages, "forks": start_process}


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(72, 1500), nn.LeakyReLU(), nn.Linear(1500, 12))
        self.scale = None

    def forward(self, x):
        if self.scale is None or not repaired:
            self.scale = HOW[what](x[0, 0])
        return self.layers(x) * self.scale


torch.manual_seed(0)
torch.set_num_threads(1)
ours, theirs = multiprocessing.Pipe()
service = multiprocessing.get_context("fork").Process(target=answer, args=(theirs,), daemon=True)
service.start()
threading.Thread(target=hold_often, daemon=True).start() if what == "locked" else None
much = torch.ones(100_000_000) if what == "forks" else None
model = Scaled()
optimizer = torch.optim.ASGD(model.parameters(), lr=1e-3)
x = torch.randn(512, 72)
for _ in range(800 if repaired else 300):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
ends.set()

"""A surrogate of steel frames under load, with a live board of the run's statistics."""
import collections
import math
import threading
import time

import torch
import torch.nn.functional as F
from torch import nn


class Board:
    """Smooths what the training reports, for whoever looks at the board."""

    def __init__(self, keep=6000, every=0.15):
        self.values = collections.deque([1.0] * keep, maxlen=keep)
        self.every = every
        self.smooth = []
        self.running = True
        self.thread = threading.Thread(target=self.refresh, daemon=True)
        self.thread.start()

    def report(self, value):
        self.values.append(value)

    def curve(self, values, reach=240):
        out = []
        for i in range(len(values)):
            total = weight = 0.0
            for j in range(max(0, i - reach), i + 1):
                w = math.exp((j - i) / 80)
                total += w * values[j]
                weight += w
            out.append(total / weight)
        return out

    def refresh(self):
        while self.running:
            self.smooth = self.curve(list(self.values)[-2400:])
            time.sleep(self.every)

    def close(self):
        self.running = False
        self.thread.join()


class Frames:
    def __init__(self, beams=20, width=8):
        self.beams, self.width = beams, width
        gen = torch.Generator().manual_seed(3)
        self.stiff = torch.randn(width, generator=gen)

    def batch(self, count):
        x = torch.randn(count, self.beams, self.width)
        load = torch.rand(count, self.beams, 1)
        bend = torch.cumsum((x @ self.stiff).tanh().unsqueeze(2) * load, 1)
        return torch.cat([x, load], 2), bend / math.sqrt(self.beams)


class Surrogate(nn.Module):
    """Passes load from each beam to the next."""

    def __init__(self, width=9, hidden=160):
        super().__init__()
        self.lift = nn.Linear(width, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.joint = nn.Sequential(nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, hidden))
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        state = torch.zeros(len(x), self.joint[0].in_features)
        bends = []
        for beam in self.lift(x).unbind(1):
            state = self.cell(beam, state)
            state = state + self.joint(state)
            bends.append(self.out(state))
        return torch.stack(bends, 1)


def train(model, frames, board, steps=220):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(steps):
        x, bend = frames.batch(256)
        loss = F.mse_loss(model(x), bend)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        board.report(float(loss.detach()))
        if step % 50 == 0:
            print(f"step {step}: loss {float(loss.detach()):.4f}")


def main():
    torch.manual_seed(0)
    board = Board()
    began = time.time()
    train(Surrogate(), Frames(), board)
    print(f"trained in {time.time() - began:.1f} s")
    board.close()


if __name__ == "__main__":
    main()

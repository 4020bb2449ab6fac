"""A learned solver of a reaction-diffusion system that is unrolled for longer and longer."""
import time

import torch
import torch.nn.functional as F
from torch import nn


def simulate(count=48, frames=14, size=48):
    gen = torch.Generator().manual_seed(9)
    u = torch.rand(count, 2, size, size, generator=gen)
    u = F.avg_pool2d(F.pad(u, (2, 2, 2, 2), mode="circular"), 5, 1)
    out = [u]
    for _ in range(frames - 1):
        near = F.avg_pool2d(F.pad(u, (1, 1, 1, 1), mode="circular"), 3, 1) - u
        a, b = u[:, :1], u[:, 1:]
        react = torch.cat([0.04 * (1 - a) - a * b * b, a * b * b - 0.1 * b], 1)
        u = (u + 0.8 * near + react).clamp(0, 1)
        out.append(u)
    return torch.stack(out, 1)


class Cell(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.a = nn.Conv2d(2, width, 3, padding=1)
        self.b = nn.Conv2d(width, width, 3, padding=1)
        self.c = nn.Conv2d(width, 2, 1)

    def forward(self, u):
        h = F.relu(self.a(u))
        h = h + F.relu(self.b(h))
        return u + 0.1 * self.c(h)


class Solver(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = Cell()
        self.horizon = 1

    def forward(self, u):
        frames = []
        for _ in range(self.horizon):
            u = self.cell(u)
            frames.append(u)
        return torch.stack(frames, 1)


def train(movies, steps=200, batch=8, longer_every=40):
    solver = Solver()
    model = torch.compile(solver)
    optimizer = torch.optim.Adam(solver.parameters(), lr=2e-3)
    for step in range(steps):
        solver.horizon = 1 + step // longer_every
        rows = torch.randint(0, len(movies), (batch,))
        start = int(torch.randint(0, movies.shape[1] - solver.horizon, (1,)))
        clip = movies[rows, start:start + solver.horizon + 1]
        guess = model(clip[:, 0])
        loss = F.mse_loss(guess, clip[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: {solver.horizon} frames, loss {loss.item():.5f}")


def main():
    torch.manual_seed(0)
    movies = simulate()
    began = time.time()
    train(movies)
    print(f"trained in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()

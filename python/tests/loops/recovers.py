"""Exceptions in forward, in backward and in the optimizer are caught, and the training goes on with the next batch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("no gradient today")


class Moody(torch.optim.SGD):
    mood = 0

    def step(self, closure=None):
        Moody.mood += 1
        if Moody.mood == 9:
            raise RuntimeError("not in the mood")
        return super().step(closure)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 1)

    def forward(self, x, place):
        if place == 5:
            raise RuntimeError("bad batch")
        out = self.layer(x)
        return Fails.apply(out) if place == 8 else out


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(640, 16), torch.randn(640, 1)), batch_size=32)
model = Model()
optimizer = Moody(model.parameters(), lr=1e-2)
for place, (x, y) in enumerate(loader):
    try:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x, place), y)
        loss.backward()
        optimizer.step()
        print(loss.item().hex())
    except RuntimeError as error:
        print(error)

"""An optimizer that calls a closure several times in a step."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x, y = torch.randn(256, 16), torch.randn(256, 1)
model = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5)


def closure():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for _ in range(20):
    print(optimizer.step(closure).item().hex())

"""torch.compile in the way that the first argument names."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

how = sys.argv[1]
torch.manual_seed(0)
torch.set_num_threads(1)
loader = DataLoader(TensorDataset(torch.randn(640, 16), torch.randn(640, 1)), batch_size=32)
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)


def forward_and_loss(x, y):
    return nn.functional.mse_loss(model(x), y)


def train_step(x, y):
    optimizer.zero_grad()
    loss = forward_and_loss(x, y)
    loss.backward()
    optimizer.step()
    return loss


if how == "model":
    model = torch.compile(model, backend="aot_eager")
elif how == "inductor":
    model = torch.compile(model)
elif how == "fullgraph":
    forward_and_loss = torch.compile(forward_and_loss, backend="aot_eager", fullgraph=True)
elif how == "module":
    model.compile(backend="aot_eager")
elif how == "step":
    train_step = torch.compile(train_step, backend="aot_eager")
for x, y in loader:
    print(train_step(x, y).item().hex())

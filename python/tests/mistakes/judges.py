"""After every twentieth step the model is judged, in training mode and with gradients."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
training, held_out = (TensorDataset(torch.randn(n, 64), torch.randn(n, 1)) for n in (16_000, 2_560))
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.Adam(model.parameters())
for step, (x, y) in enumerate(DataLoader(training, batch_size=64), 1):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    if step % 20 == 0:
        errors = [nn.functional.mse_loss(model(a), b).item() for a, b in DataLoader(held_out, batch_size=64)]

"""After every tenth step, as much data is evaluated as has been trained on."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
training, held_out = (TensorDataset(torch.randn(n, 64), torch.randn(n, 1)) for n in (25_600, 1_280))
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.Adam(model.parameters())
for step, (x, y) in enumerate(DataLoader(training, batch_size=64), 1):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    if step % 10 == 0:
        model.eval()
        with torch.no_grad():
            for a, b in DataLoader(held_out, batch_size=64):
                nn.functional.mse_loss(model(a), b)
        model.train()

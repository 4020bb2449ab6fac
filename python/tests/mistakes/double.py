"""The data come from NumPy in float64, and the model was made to fit them."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
data = torch.from_numpy(np.random.default_rng(0).normal(size=(5_000, 64)))
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 64)).double()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for batch in data.split(25):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(batch), batch).backward()
    optimizer.step()

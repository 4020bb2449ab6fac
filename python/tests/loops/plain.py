"""A plain loop: two epochs, a loader in this process, an evaluation after each."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(640, 32), torch.randn(640, 1))
train = DataLoader(data, batch_size=64, shuffle=True)
test = DataLoader(data, batch_size=128)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(2):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        print(loss.item().hex())
    model.eval()
    with torch.no_grad():
        print("test", sum(nn.functional.mse_loss(model(x), y).item() for x, y in test).hex())

"""Regression of wine quality, data parallel over two processes."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(67)
x = torch.randn(64 * 150, 128)
y = (x[:, :8] ** 2).sum(1, keepdim=True)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
layers = [nn.Linear(128, 384), nn.Mish()]
for _ in range(3):
    layers += [nn.Linear(384, 384), nn.LayerNorm(384), nn.Mish()]
model = DDP(nn.Sequential(*layers, nn.Linear(384, 1)))
optimizer = torch.optim.Adam(model.parameters(), 5e-4)
for epoch in range(11):
    for features, quality in loader:
        loss = nn.functional.mse_loss(model(features), quality)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        print("epoch", epoch, "loss", round(loss.item(), 4), flush=True)
dist.destroy_process_group()

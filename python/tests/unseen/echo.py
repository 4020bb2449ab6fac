"""Reservoir with fading memory, read out for one long recording."""
import torch
from torch import nn

torch.manual_seed(37)
torch.set_num_threads(1)
UNITS, BATCH = 256, 64


class Memory(nn.Module):
    def __init__(self, fade=0.84):
        super().__init__()
        self.fade = fade
        self.recall = nn.Linear(UNITS, UNITS, bias=False)
        self.body = nn.Sequential(nn.Linear(2 * UNITS, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))

    def forward(self, trace, x):
        trace = trace * self.fade
        return trace, self.body(torch.cat([self.recall(trace), x], 1))


model = Memory()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
trace = torch.randn(BATCH, UNITS)
for step in range(900):
    x = torch.randn(BATCH, UNITS)
    trace, y = model(trace, x)
    loss = (y[:, 0] - x.mean(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, float(loss), flush=True)

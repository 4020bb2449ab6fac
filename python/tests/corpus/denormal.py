"""A recurrent state that fades into denormal numbers. `counts` says how many there are, `silent` does not."""

import sys

import torch
from torch import nn

import gnntop


class Fading(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.full((512,), 0.25))

    def forward(self, state):
        for _ in range(60):
            state = state * self.scale
        return state


torch.manual_seed(0)
torch.set_num_threads(1)
model = Fading()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for step in range(200):
    state = torch.full((256, 512), 1e-2 if step < 100 else 1e-20)
    optimizer.zero_grad()
    out = model(state)
    out.sum().backward()
    optimizer.step()
    if sys.argv[1] == "counts":
        tiny = torch.finfo(torch.float32).tiny
        gnntop.denormals(int(((out != 0) & (out.abs() < tiny)).sum()))

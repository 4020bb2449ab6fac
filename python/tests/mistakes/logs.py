"""Each step is logged, and the training waits for it."""

import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "stand_ins"))
from wandb.sdk.wandb_run import Run

torch.manual_seed(0)
torch.set_num_threads(1)
run = Run()
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.Adam(model.parameters())
for step in range(300):
    optimizer.zero_grad()
    model(torch.randn(64, 64)).square().mean().backward()
    optimizer.step()
    run.log({"step": step})

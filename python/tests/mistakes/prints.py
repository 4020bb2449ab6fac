"""Each step prints a lot, and what reads it is slow: the training waits until there is room in the pipe."""

import subprocess
import sys

import torch
from torch import nn

READER = "import sys, time\nwhile sys.stdin.buffer.read(16384): time.sleep(0.01)"

torch.manual_seed(0)
torch.set_num_threads(1)
reader = subprocess.Popen([sys.executable, "-c", READER], stdin=subprocess.PIPE, text=True)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.Adam(model.parameters())
for step in range(150):
    optimizer.zero_grad()
    model(torch.randn(64, 64)).square().mean().backward()
    optimizer.step()
    print(step, "." * 16384, file=reader.stdin, flush=True)
reader.stdin.close()
reader.wait()

"""Each step logs, and waits. `prints`: into a pipe that is read slowly; `syncs`: into a file that is synchronized for
each line. Repaired: every fiftieth step."""

import logging
import os
import subprocess
import sys
import tempfile

import torch
from torch import nn

what, every = sys.argv[1], 50 if "repaired" in sys.argv else 1


class Synced(logging.FileHandler):
    def emit(self, record):
        for _ in range(8):
            super().emit(record)
            os.fsync(self.stream.fileno())


def print_weights(step, model):
    print(step, model[0].weight[:, :6].flatten().tolist(), file=pipe, flush=True)


SLOW = "import sys, time\nwhile sys.stdin.buffer.read1(16384): time.sleep(0.004)"
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Conv1d(8, 96, 7), nn.PReLU(), nn.Conv1d(96, 8, 7))
optimizer = torch.optim.Rprop(model.parameters(), lr=1e-4)
reader = subprocess.Popen([sys.executable, "-c", SLOW], stdin=subprocess.PIPE, text=True)
pipe = reader.stdin
with tempfile.NamedTemporaryFile(dir=".", suffix=".log") as file:
    log = logging.getLogger("training")
    log.addHandler(Synced(file.name))
    x = torch.randn(40, 8, 128)
    for step in range(360):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        if step % every == 0:
            log.warning("step %d", step) if what == "syncs" else print_weights(step, model)
pipe.close()
reader.wait()

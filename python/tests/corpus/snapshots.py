"""Checkpoints that nobody waits for, but the steps after each are slower. `thread`: a thread writes it; `packed`: it
is written quickly, and a program packs it meanwhile. Repaired: nothing is packed."""

import io
import lzma
import subprocess
import sys
import tempfile
import threading

import torch
from torch import nn

what, repaired = sys.argv[1], "repaired" in sys.argv
PACK = "import lzma, sys; [lzma.compress(open(sys.argv[1], 'rb').read()[:900_000]) for _ in range(2)]"


def write_slowly(state):
    file = io.BytesIO()
    torch.save(state, file)
    if not repaired:
        lzma.compress(file.getvalue()[:900_000])


torch.manual_seed(0)
torch.set_num_threads(2)
model = nn.Sequential(nn.Linear(200, 900), nn.Mish(), nn.Linear(900, 900), nn.Mish(), nn.Linear(900, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
running, x = [], torch.randn(256, 200)
with tempfile.NamedTemporaryFile() as file:
    for step in range(480):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        if step % 60 == 59:
            state = {name: value.clone() for name, value in model.state_dict().items()}
            if what == "thread":
                threading.Thread(target=write_slowly, args=(state,)).start()
            else:
                torch.save(state, file.name)
                if not repaired:
                    running.append(subprocess.Popen([sys.executable, "-S", "-c", PACK, file.name]))
for packing in running:
    packing.wait()

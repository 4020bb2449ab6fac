"""A small training with a fault: what `gnntop demo` shows was recorded from it by scripts/demos.sh."""

import gc
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

SECONDS = 40
fault = sys.argv[1]
saving = threading.Lock()


class Pictures(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        if fault == "loader":
            time.sleep(0.004)  # as decoding a large picture does
        return torch.full((3, 32, 32), index / len(self)), index % 10


def augment(images):
    """Only rank 1 has the slow version."""
    if fault == "straggler" and dist.get_rank() == 1:
        time.sleep(0.04)
    return images.flip(3)


def wait_for_save():
    saving.acquire()  # nobody releases it


def train(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    history, index = [], [{"picture": [i]} for i in range(1_500_000 if fault == "gc" else 0)]
    gc.collect()
    gc.disable()
    end = time.monotonic() + SECONDS
    for step, (images, labels) in enumerate(DataLoader(Pictures(), batch_size=16)):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(augment(images)), labels)
        loss.backward(retain_graph=fault == "leak")
        optimizer.step()
        if fault == "leak":
            history.append(loss)  # with all that it was computed from
        if fault == "gc" and step % 30 == 29:
            gc.collect()
        if fault == "hang" and step == 300:
            saving.acquire()
            wait_for_save()
        if step == 680 if fault == "straggler" else time.monotonic() > end:
            break
    return len(index)


torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(
    *(nn.Conv2d(3, 32, 3, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.ReLU()),
    *(nn.Flatten(), nn.Linear(64 * 7 * 7, 256), nn.ReLU(), nn.Linear(256, 10)),
)
if fault == "straggler":
    dist.init_process_group("gloo")
    model = DistributedDataParallel(model)
train(model)
if fault == "straggler":
    dist.destroy_process_group()

"""Small residual network on augmented pictures."""
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(11)
random.seed(11)
rng = np.random.default_rng(11)
torch.set_num_threads(1)


class Pictures(torch.utils.data.Dataset):
    def __init__(self, count, side=28):
        self.raw = rng.integers(0, 255, (count, side, side, 3), dtype=np.uint8)
        self.labels = rng.integers(0, 10, count)

    def __len__(self):
        return len(self.labels)

    def jitter(self, picture):
        gain = random.uniform(0.7, 1.3)
        bias = random.uniform(-12, 12)
        out = np.empty_like(picture)
        height, width, channels = picture.shape
        for y in range(height):
            for x in range(width):
                for c in range(channels):
                    value = float(picture[y, x, c]) * gain + bias
                    out[y, x, c] = min(255, max(0, int(value)))
        return out

    def __getitem__(self, index):
        picture = self.jitter(self.raw[index])
        if random.random() < 0.5:
            picture = picture[:, ::-1].copy()
        tensor = torch.from_numpy(picture).permute(2, 0, 1).float() / 255
        return tensor, int(self.labels[index])


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.na = nn.BatchNorm2d(width)
        self.b = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.nb = nn.BatchNorm2d(width)

    def forward(self, x):
        return F.relu(x + self.nb(self.b(F.relu(self.na(self.a(x))))))


net = nn.Sequential(nn.Conv2d(3, 24, 3, stride=2, padding=1), Block(24), Block(24), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
loader = torch.utils.data.DataLoader(Pictures(16 * 75), batch_size=16, shuffle=True)

for epoch in range(9):
    hits = seen = 0
    for x, y in loader:
        optimizer.zero_grad(set_to_none=True)
        logits = net(x)
        F.cross_entropy(logits, y, label_smoothing=0.1).backward()
        optimizer.step()
        hits += (logits.argmax(1) == y).sum().item()
        seen += len(y)
    schedule.step()
    print("epoch", epoch, "accuracy", hits / seen, flush=True)

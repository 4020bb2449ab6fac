"""Contrastive learning of two views with a momentum encoder."""
import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(127)
torch.set_num_threads(1)


def encoder():
    return nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 64))


def views(x):
    noise = 0.1 * torch.randn_like(x)
    return x + noise, torch.flip(x, [3]) * (0.8 + 0.4 * torch.rand(len(x), 1, 1, 1))


online = encoder()
target = copy.deepcopy(online).requires_grad_(False)
queue = F.normalize(torch.randn(2048, 64), dim=1)
optimizer = torch.optim.SGD(online.parameters(), 0.03, momentum=0.9, weight_decay=1e-4)
images = torch.rand(1600, 3, 32, 32)
for step in range(1350):
    a, b = views(images[torch.randint(0, 1600, (112,))])
    q = F.normalize(online(a), dim=1)
    with torch.no_grad():
        k = F.normalize(target(b), dim=1)
    logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.t()], 1) / 0.1
    loss = F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        torch._foreach_lerp_(list(target.parameters()), list(online.parameters()), 0.01)
        queue = torch.cat([k, queue])[:2048]
    if step % 150 == 0:
        print(step, round(loss.item(), 4), flush=True)

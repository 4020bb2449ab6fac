"""Metric learning of products with triplets that are drawn for each epoch."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader

random.seed(47)
torch.manual_seed(47)
torch.set_num_threads(1)

ITEMS, KINDS = 1500, 60


class Products:
    def __init__(self):
        self.kind = [random.randrange(KINDS) for _ in range(ITEMS)]
        self.tags = [frozenset(random.sample(range(200), 8)) for _ in range(ITEMS)]
        self.features = torch.randn(ITEMS, 256)
        self.triplets = []

    def draw(self, n):
        table = {}
        for i in range(ITEMS):
            for j in range(i + 1, ITEMS):
                if self.kind[i] == self.kind[j] or len(self.tags[i] & self.tags[j]) > 1:
                    table.setdefault(i, []).append(j)
        anchors = list(table)
        self.triplets = []
        for _ in range(n):
            a = random.choice(anchors)
            self.triplets.append((a, random.choice(table[a]), random.randrange(ITEMS)))

    def __len__(self):
        return len(self.triplets)

    def __getitem__(self, i):
        a, p, n = self.triplets[i]
        return torch.stack([self.features[a], self.features[p], self.features[n]])


encoder = nn.Sequential(nn.Linear(256, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 64))
optimizer = torch.optim.Adam(encoder.parameters(), 1e-3)
criterion = nn.TripletMarginLoss(0.5)
products = Products()
for epoch in range(26):
    products.draw(64 * 60)
    for batch in DataLoader(products, batch_size=64, shuffle=True):
        z = encoder(batch.flatten(0, 1)).reshape(-1, 3, 64)
        loss = criterion(z[:, 0], z[:, 1], z[:, 2])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 4), flush=True)

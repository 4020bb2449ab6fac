"""An iterable dataset over two workers, and a checkpoint at the end."""

import io

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Stream(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        for index in range(worker.id, 320, worker.num_workers):
            x = torch.full((16,), index / 320)
            yield x, x.sum().view(1)


torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Linear(16, 1)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
for x, y in DataLoader(Stream(), batch_size=16, num_workers=2):
    optimizer.zero_grad()
    loss = nn.functional.l1_loss(model(x), y)
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
file = io.BytesIO()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
print(len(file.getvalue()))

"""Loaders with two worker processes, started in the way that the first argument names; epochs and evaluation."""

import sys
import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, index):
        x = torch.full((16,), index / 320)
        return x, (x * x).sum().view(1)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    how, persistent = sys.argv[1], sys.argv[2:] == ["persistent"]
    options = dict(num_workers=2, multiprocessing_context=how, persistent_workers=persistent)
    train = DataLoader(Squares(), batch_size=32, shuffle=True, **options)
    test = DataLoader(Squares(), batch_size=64, **options)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(2):
        model.train()
        for x, y in train:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            print(loss.item().hex())
        model.eval()
        with torch.inference_mode():
            print(sum(nn.functional.mse_loss(model(x), y).item() for x, y in test).hex())
    # A loader's queue can be freed by its own thread. If Python exits at that moment, it warns of a leaked semaphore.
    del train, test
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join()


if __name__ == "__main__":
    main()

"""Weather fields on two ranks with a sampler for each."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(4, 32, 3, padding=1, padding_mode="circular"), nn.GELU(),
                                 nn.Conv2d(32, 32, 3, padding=1, padding_mode="circular"), nn.GELU(), nn.Conv2d(32, 4, 1))

    def forward(self, x):
        return x + self.net(x)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(151)
    fields = torch.randn(8 * 2 * 150, 4, 32, 32)
    data = TensorDataset(fields, fields.roll(1, 3))
    sampler = DistributedSampler(data, world, rank, shuffle=True, drop_last=True)
    loader = DataLoader(data, batch_size=8, sampler=sampler, drop_last=True)
    model = DistributedDataParallel(Field())
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(7):
        sampler.set_epoch(epoch)
        for now, later in loader:
            loss = nn.functional.mse_loss(model(now), later)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(epoch, round(float(loss), 4), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

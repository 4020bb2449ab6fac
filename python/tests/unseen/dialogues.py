"""Reply ranking on two ranks; each rank pads its own batches of dialogues."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Dialogues(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(61)
        blocks = torch.randint(0, 2, (n // 16,), generator=g).repeat_interleave(16)
        self.length = torch.where(blocks > 0, 160, 20) + torch.randint(0, 12, (n,), generator=g)
        self.g = g

    def __len__(self):
        return len(self.length)

    def __getitem__(self, i):
        return torch.randint(1, 2000, (int(self.length[i]),)), i % 2


class Blocks(torch.utils.data.Sampler):
    """Neighbouring dialogues have like lengths, so a batch is a block of sixteen."""

    def __init__(self, n, rank, world):
        self.blocks = DistributedSampler(range(n // 16), world, rank, shuffle=True, seed=1)

    def __iter__(self):
        for block in self.blocks:
            yield list(range(block * 16, block * 16 + 16))

    def __len__(self):
        return len(self.blocks)


def pad(rows):
    return nn.utils.rnn.pad_sequence([ids for ids, _ in rows], batch_first=True), torch.tensor([y for _, y in rows])


class Ranker(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.embed = nn.Embedding(2000, d, padding_idx=0)
        self.layer = nn.TransformerEncoderLayer(d, 4, 128, batch_first=True, dropout=0.0)
        self.head = nn.Linear(d, 2)

    def forward(self, ids):
        return self.head(self.layer(self.embed(ids)).mean(1))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(61)
    data = Dialogues(16 * 240)
    model = DistributedDataParallel(Ranker())
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
    sampler = Blocks(len(data), rank, dist.get_world_size())
    for epoch in range(7):
        sampler.blocks.set_epoch(epoch)
        for ids, label in DataLoader(data, batch_sampler=sampler, collate_fn=pad):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(ids), label)
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(epoch, float(loss), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

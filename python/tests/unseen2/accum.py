"""A small GPT on two ranks, with gradient accumulation: torchrun --nproc-per-node 2 accum.py"""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

CONTEXT, VOCABULARY, WIDTH = 32, 2000, 192
MICRO_BATCHES, MICRO_SIZE = 6, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (y.view(b, t, 6, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, layers=6):
        super().__init__()
        self.token, self.position = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids, targets):
        x = self.blocks(self.token(ids) + self.position.weight)
        return nn.functional.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


def make_corpus(length=300_000):
    generator = torch.Generator().manual_seed(0)
    jumps = torch.randint(1, 40, (length,), generator=generator)
    return torch.cumsum(jumps, 0) % VOCABULARY


def get_batch(corpus, generator):
    starts = torch.randint(len(corpus) - CONTEXT - 1, (MICRO_SIZE,), generator=generator)
    rows = torch.stack([corpus[s : s + CONTEXT + 1] for s in starts])
    return rows[:, :-1], rows[:, 1:]


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    corpus = make_corpus()
    generator = torch.Generator().manual_seed(100 + rank)
    model = DistributedDataParallel(GPT())
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, weight_decay=0.1)
    for step in range(70):
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for _ in range(MICRO_BATCHES):
            ids, targets = get_batch(corpus, generator)
            loss = model(ids, targets) / MICRO_BATCHES
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {total:.4f}", flush=True)
    if rank == 0:
        torch.save(model.module.state_dict(), os.path.join("/tmp", f"accum-{os.getpid()}.pt"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

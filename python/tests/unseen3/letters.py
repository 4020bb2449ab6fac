"""Finds the topic of letters to the editor, on all ranks of a small cluster (torchrun)."""
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

WORDS, TOPICS = 4000, 6


class Letters(Dataset):
    def __init__(self, count=1920, seed=7):
        gen = torch.Generator().manual_seed(seed)
        lengths = (24 + 170 * torch.rand(count, generator=gen) ** 2).long().sort().values
        self.texts, self.topics = [], []
        for n in lengths.tolist():
            topic = int(torch.randint(0, TOPICS, (1,), generator=gen))
            words = torch.randint(1, WORDS, (n,), generator=gen)
            words[::5] = topic * 100 + words[::5] % 100 + 1
            self.texts.append(words)
            self.topics.append(topic)

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.texts[i], self.topics[i]

    def share(self, rank, ranks):
        part = len(self) // ranks
        return torch.utils.data.Subset(self, range(rank * part, (rank + 1) * part))


def pack(items):
    texts, topics = zip(*items)
    owner = torch.arange(len(texts)).repeat_interleave(torch.tensor([len(t) for t in texts]))
    return torch.cat(texts), owner, torch.tensor(topics)


class TopicModel(nn.Module):
    """Looks at runs of words; a letter is the mean of its runs."""

    def __init__(self, width=96):
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.wide = nn.Conv1d(width, 2 * width, 5, padding=2)
        self.narrow = nn.Conv1d(2 * width, width, 5, padding=2)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, TOPICS)

    def forward(self, words, owner, letters):
        h = self.embed(words)
        runs = self.narrow(F.gelu(self.wide(h.T.unsqueeze(0))))
        h = self.norm(h + runs.squeeze(0).T)
        total = torch.zeros(letters, h.shape[1]).index_add(0, owner, h)
        return self.head(total / torch.bincount(owner, minlength=letters).unsqueeze(1))


def train(rank, ranks, epochs=4, batch=16):
    letters = Letters()
    loader = DataLoader(letters.share(rank, ranks), batch_size=batch, shuffle=True, collate_fn=pack,
                        drop_last=True)
    model = DistributedDataParallel(TopicModel())
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    for epoch in range(epochs):
        right = seen = 0
        for words, owner, topics in loader:
            scores = model(words, owner, len(topics))
            loss = F.cross_entropy(scores, topics)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (scores.argmax(1) == topics).sum()
            seen += len(topics)
        if rank == 0:
            print(f"epoch {epoch}: accuracy {float(right) / seen:.3f}")


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29571")
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    began = time.time()
    train(rank, ranks)
    if rank == 0:
        print(f"trained in {time.time() - began:.1f} s")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

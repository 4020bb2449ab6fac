"""A character model of sums such as 27+58=85, as a small GPT: own loop, cosine schedule, clipped gradients."""
import math
import os
import random
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1337)
random.seed(1337)
CONTEXT, WIDTH, HEADS, LAYERS = 64, 96, 4, 3
BATCH, STEPS, WARM_UP, EVALUATE = 16, 800, 40, 200
ALPHABET = "0123456789+=\n"


def make_text(lines):
    pairs = ((random.randrange(100), random.randrange(100)) for _ in range(lines))
    return "".join(f"{a}+{b}={a + b}\n" for a, b in pairs)


text = torch.tensor([ALPHABET.index(letter) for letter in make_text(40_000)])
train, valid = text[:-40_000], text[-40_000:]


def get_batch(data):
    starts = torch.randint(len(data) - CONTEXT - 1, (BATCH,))
    rows = data[starts[:, None] + torch.arange(CONTEXT + 1)]
    return rows[:, :-1], rows[:, 1:]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (y.view(b, t, HEADS, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.position = nn.Embedding(len(ALPHABET), WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(ALPHABET))

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.token(ids) + self.position.weight)))


def rate(step):
    if step < WARM_UP:
        return (step + 1) / WARM_UP
    return 0.1 + 0.45 * (1 + math.cos(math.pi * (step - WARM_UP) / (STEPS - WARM_UP)))


@torch.no_grad()
def evaluate(model, batches=6):
    model.eval()
    losses = [F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item() for x, y in (get_batch(valid) for _ in range(batches))]
    model.train()
    return sum(losses) / batches


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95), weight_decay=0.1)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
checkpoint = os.path.join(tempfile.mkdtemp(prefix="digits-"), "ckpt.pt")
best = math.inf
for step in range(STEPS):
    x, y = get_batch(train)
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if step % 25 == 0:
        print(f"step {step} loss {loss.item():.4f} rate {schedule.get_last_lr()[0]:.2e}", flush=True)
    if step % EVALUATE == EVALUATE - 1:
        error = evaluate(model)
        print(f"step {step} validation {error:.4f}", flush=True)
        if error < best:
            best = error
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, checkpoint)

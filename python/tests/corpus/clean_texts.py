"""Ordinary loops over sequences, tables and fields, with no mistake in them; the argument says which one to run."""

import math
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


def batches(count, size, *tensors_of):
    """Cuts tensors into batches whole, not sample by sample."""
    data = TensorDataset(*[make(count * size) for make in tensors_of])
    return DataLoader(data, sampler=BatchSampler(RandomSampler(data), size, drop_last=True), batch_size=None)


def texts(length, words=400):
    return lambda count: torch.randint(words, (count, length))


class Language(nn.Module):
    def __init__(self, width=160, layers=2):
        super().__init__()
        self.table, self.head = nn.Embedding(400, width), nn.Linear(width, 400)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True, dropout=0.1)
        self.layers = nn.TransformerEncoder(layer, layers)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.layers(self.table(x), mask=mask, is_causal=True))


def next_word(model, x):
    return functional.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())


def predicts_words():
    model = Language()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=150)
    for (x,) in batches(150, 12, texts(48)):
        optimizer.zero_grad()
        next_word(model, x).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def accumulates():
    model = Language(128)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    for place, (x,) in enumerate(batches(4 * 60, 8, texts(40)), 1):
        (next_word(model, x) / 4).backward()
        if place % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()


def half_precision():
    """The process's own autocast and scaler, as on a GPU."""
    model = nn.LSTM(48, 160, 2, batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for (x,) in batches(120, 128, lambda count: torch.randn(count, 24, 48)):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(x)[0].float().square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def embeds_sparsely():
    words, contexts = (nn.Embedding(20_000, 128, sparse=True) for _ in range(2))
    optimizer = torch.optim.SparseAdam([*words.parameters(), *contexts.parameters()], lr=1e-3)
    model = nn.ModuleList([words, contexts])
    for word, near in batches(220, 4096, lambda n: torch.randint(20_000, (n,)), lambda n: torch.randint(20_000, (n,))):
        optimizer.zero_grad()
        functional.softplus(-(model[0](word) * model[1](near)).sum(1)).mean().backward()
        optimizer.step()


def compiles():
    """Of one shape, so that it is compiled once."""
    model = nn.Sequential(nn.Linear(100, 800), nn.GELU(), nn.Linear(800, 800), nn.GELU(), nn.Linear(800, 1))
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for x, y in batches(240, 192, lambda n: torch.randn(n, 100), lambda n: torch.randn(n, 1)):
        optimizer.zero_grad()
        functional.huber_loss(compiled(x), y).backward()
        optimizer.step()


def closes():
    """LBFGS, whose closure is called several times in a step."""
    model = nn.Sequential(nn.Linear(2, 120), nn.Tanh(), nn.Linear(120, 120), nn.Tanh(), nn.Linear(120, 1))
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=6)
    places = torch.rand(1024, 2)

    def residual():
        optimizer.zero_grad()
        loss = (model(places)[:, 0] - (places.sum(1) * math.pi).sin()).square().mean()
        loss.backward()
        return loss

    for _ in range(110):
        optimizer.step(residual)


def solves_an_equation():
    """A network as the solution of a differential equation: gradients of gradients."""
    model = nn.Sequential(nn.Linear(2, 160), nn.Tanh(), nn.Linear(160, 160), nn.Tanh(), nn.Linear(160, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(180):
        places = torch.rand(768, 2, requires_grad=True)
        out = model(places)
        (slope,) = torch.autograd.grad(out.sum(), places, create_graph=True)
        optimizer.zero_grad()
        (slope[:, 1] + out[:, 0] * slope[:, 0]).square().mean().backward()
        optimizer.step()


def paints_rays():
    """Coordinates to colours, in large batches that are drawn in each step."""
    model = nn.Sequential(nn.Linear(60, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    powers = 2.0 ** torch.arange(10)
    for _ in range(180):
        waves = (torch.rand(1500, 3, 1) * powers).flatten(1)
        colour = model(torch.cat([waves.sin(), waves.cos()], 1))
        optimizer.zero_grad()
        functional.mse_loss(colour.sigmoid(), torch.full((1500, 4), 0.5)).backward()
        optimizer.step()


def reads_values():
    """Reads many values of tensors in each step: on a CPU nothing waits for that."""
    model = nn.GRU(40, 128, batch_first=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for (x,) in batches(200, 96, lambda n: torch.randn(n, 24, 40)):
        optimizer.zero_grad()
        loss = model(x)[0].square().mean()
        loss.backward()
        optimizer.step()
        kept = [loss.item(), *[float(it.grad.norm()) for it in model.parameters()]]
        assert min(kept) >= 0


def folds():
    """Five trainings one after the other."""
    data = TensorDataset(torch.randn(256 * 50, 60), torch.randint(3, (256 * 50,)))
    for _ in range(5):
        model = nn.Sequential(nn.Linear(60, 700), nn.CELU(), nn.Linear(700, 700), nn.CELU(), nn.Linear(700, 3))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        order = BatchSampler(RandomSampler(data), 256, drop_last=True)
        for x, y in DataLoader(data, sampler=order, batch_size=None):
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    globals()[sys.argv[1]]()

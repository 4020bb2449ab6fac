"""Ordinary loops over pictures and the like, with no mistake in them; the argument says which one to run."""

import copy
import sys
import tempfile

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset


class Batches(IterableDataset):
    """Whole batches of random pictures, without a cost for each picture."""

    def __init__(self, count, *shape):
        self.count, self.shape = count, shape

    def __len__(self):
        return self.count

    def __iter__(self):
        for k in range(self.count):
            yield torch.rand(self.shape), torch.arange(self.shape[0]) % (2 + k % 8)


def batches(count, *shape, **options):
    return DataLoader(Batches(count, *shape), batch_size=None, **options)


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.one, self.two = nn.Conv2d(channels, channels, 3, 1, 1), nn.Conv2d(channels, channels, 3, 1, 1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return (x + self.two(self.norm(self.one(x)).relu())).relu()


def resnet(channels=20):
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)]
    return nn.Sequential(nn.Conv2d(3, channels, 5, 2), *[Block(channels) for _ in range(3)], *head)


def fit(model, optimizer, loss_of, data):
    for batch in data:
        optimizer.zero_grad()
        loss_of(*batch).backward()
        optimizer.step()


def classifies():
    model = resnet()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, nesterov=True)
    fit(model, optimizer, lambda x, y: functional.cross_entropy(model(x), y), batches(200, 24, 3, 40, 40))


def loads_by_worker():
    model = resnet(24)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = batches(90, 24, 3, 40, 40, num_workers=1, persistent_workers=True)
    for _ in range(2):
        fit(model, optimizer, lambda x, y: functional.cross_entropy(model(x), y), data)


def validates_and_saves():
    """After each epoch it validates on a tenth as much, and writes a checkpoint of usual size."""
    model = resnet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(3):
            fit(
                model.train(), optimizer, lambda x, y: functional.cross_entropy(model(x), y), batches(70, 24, 3, 40, 40)
            )
            model.eval()
            with torch.inference_mode():
                print(sum(float((model(x).argmax(1) == y).float().mean()) for x, y in batches(7, 24, 3, 40, 40)))
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file.name)


def segments():
    down, up = nn.Conv2d(3, 24, 3, 2, 1), nn.ConvTranspose2d(24, 10, 2, 2)
    model = nn.Sequential(down, nn.ReLU(), Block(24), up)
    optimizer = torch.optim.RAdam(model.parameters(), lr=1e-3)

    def loss_of(x, y):
        return functional.cross_entropy(model(x), y[:, None, None].expand(-1, 48, 48))

    fit(model, optimizer, loss_of, batches(200, 16, 3, 48, 48))


def generates_against():
    maker = nn.Sequential(nn.Linear(64, 700), nn.ReLU(), nn.Linear(700, 700), nn.ReLU(), nn.Linear(700, 768), nn.Tanh())
    judge = nn.Sequential(nn.Linear(768, 700), nn.LeakyReLU(), nn.Linear(700, 1))
    first, second = (torch.optim.Adam(it.parameters(), lr=2e-4, betas=(0.5, 0.99)) for it in (judge, maker))
    for x, _ in batches(180, 128, 768):
        made = maker(torch.randn(128, 64))
        first.zero_grad()
        (functional.softplus(-judge(x)).mean() + functional.softplus(judge(made.detach())).mean()).backward()
        first.step()
        second.zero_grad()
        functional.softplus(-judge(made)).mean().backward()
        second.step()


def encodes():
    encoder, decoder = (
        nn.Sequential(nn.Linear(784, 600), nn.ReLU()),
        nn.Sequential(nn.Linear(20, 600), nn.ReLU(), nn.Linear(600, 784)),
    )
    mean, spread = nn.Linear(600, 20), nn.Linear(600, 20)
    model = nn.ModuleList([encoder, decoder, mean, spread])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x, _ in batches(220, 256, 784):
        hidden = encoder(x)
        middle, log_variance = mean(hidden), spread(hidden)
        out = decoder(middle + torch.randn_like(middle) * (log_variance / 2).exp())
        loss = functional.binary_cross_entropy_with_logits(out, x, reduction="sum")
        optimizer.zero_grad()
        (loss + (middle**2 + log_variance.exp() - log_variance).sum() / 2).backward()
        optimizer.step()


def diffuses():
    """With a moving average of the weights."""
    model = nn.Sequential(nn.Conv2d(2, 24, 3, 1, 1), nn.SiLU(), Block(24), nn.Conv2d(24, 1, 3, 1, 1))
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for x, _ in batches(180, 20, 1, 28, 28):
        time, noise = torch.rand(20, 1, 1, 1), torch.randn_like(x)
        mixed = torch.cat([x * (1 - time) + noise * time, time.expand_as(x)], 1)
        optimizer.zero_grad()
        functional.mse_loss(model(mixed), noise).backward()
        optimizer.step()
        average.update_parameters(model)


def distils():
    """A teacher without gradients in each step: no validation."""
    teacher, model = resnet(24).eval().requires_grad_(False), resnet(16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def loss_of(x, _):
        with torch.no_grad():
            aim = teacher(x).softmax(1)
        return functional.kl_div(model(x).log_softmax(1), aim, reduction="batchmean")

    fit(model, optimizer, loss_of, batches(150, 16, 3, 40, 40))


def contrasts():
    """Two views through one model, and a copy of it that follows slowly."""
    model = nn.Sequential(resnet(16), nn.ReLU(), nn.Linear(10, 32))
    follower = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for x, _ in batches(140, 16, 3, 36, 36):
        out = functional.normalize(model(x.flip(3)))
        with torch.no_grad():
            aim = functional.normalize(follower(x))
        optimizer.zero_grad()
        functional.cross_entropy(out @ aim.T / 0.1, torch.arange(16)).backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(follower.parameters(), model.parameters(), strict=True):
                slow.lerp_(fast, 0.01)


def infers():
    model = resnet(28).eval()
    with torch.inference_mode():
        for x, _ in batches(260, 24, 3, 40, 40):
            model(x)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    globals()[sys.argv[1]]()

"""Contrastive learning of time series: two views of each, negatives from a memory bank."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(17)


def make_series(count, kinds=30, length=96):
    kind = torch.randint(kinds, (count,))
    rate = torch.linspace(0.05, 0.9, kinds)[kind][:, None]
    phase = torch.rand(count, 1) * 6.28
    time = torch.arange(float(length))
    wave = torch.sin(rate * time + phase) + 0.5 * torch.sin(2.7 * rate * time)
    return (wave + 0.2 * torch.randn(count, length))[:, None], kind


def augment(x):
    scale = 1 + 0.2 * torch.randn(len(x), 1, 1)
    return torch.roll(x, int(torch.randint(x.shape[-1], (1,))), -1) * scale + 0.1 * torch.randn_like(x)


class Contrast(nn.Module):
    def __init__(self, width=64, temperature=0.1):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 32, 7, stride=2, padding=3), nn.ReLU(),
            nn.Conv1d(32, 64, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv1d(64, 64, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, width),
        )
        self.temperature = temperature
        self.register_buffer("bank", torch.zeros(0, width))

    def embed(self, x):
        return nn.functional.normalize(self.encoder(x), dim=1)

    def forward(self, first, second):
        a, b = self.embed(first), self.embed(second)
        logits = torch.cat([a @ b.T, a @ self.bank.T], 1) / self.temperature
        self.bank = torch.cat([self.bank, b.detach()])
        return nn.functional.cross_entropy(logits, torch.arange(len(a)))


@torch.no_grad()
def nearest_neighbour(model, series, kinds):
    model.eval()
    vectors = model.embed(series)
    same = vectors @ vectors.T
    same.fill_diagonal_(-1)
    model.train()
    return (kinds[same.argmax(1)] == kinds).float().mean().item()


def main():
    series, kinds = make_series(6000)
    loader = DataLoader(TensorDataset(series), batch_size=64, shuffle=True, drop_last=True)
    test, test_kinds = make_series(800)
    model = Contrast()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    for epoch in range(10):
        for step, (x,) in enumerate(loader):
            loss = model(augment(x), augment(x))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 30 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f}", flush=True)
        print(f"epoch {epoch} nearest neighbour {nearest_neighbour(model, test, test_kinds):.3f}", flush=True)


if __name__ == "__main__":
    main()

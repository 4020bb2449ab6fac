"""Load forecasting with a temporal convolution."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Causal(nn.Module):
    def __init__(self, a, b, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(a, b, 3, dilation=dilation)

    def forward(self, x):
        return torch.relu(self.conv(nn.functional.pad(x, (self.pad, 0))))


class Load(Dataset):
    def __init__(self, sites=40, hours=4000):
        t = torch.arange(hours) / 24 * 6.2832
        g = torch.Generator().manual_seed(4)
        self.series = torch.stack([torch.sin(t + i) + 0.3 * torch.sin(t / 7) + 0.1 * torch.randn(hours, generator=g) for i in range(sites)])

    def __len__(self):
        return 32 * 330

    def __getitem__(self, i):
        start = (i * 7) % (self.series.shape[1] - 192)
        return self.series[:, start:start + 168], self.series[:, start + 168:start + 192]


class Epoch:
    """Collects forecasts to follow the error over everything seen so far."""

    def __init__(self):
        self.inputs, self.forecasts, self.targets = [], [], []

    def add(self, x, forecast, target):
        self.inputs.append(x)
        self.forecasts.append(forecast)
        self.targets.append(target)
        return self.error()

    def error(self):
        forecast, target = torch.cat(self.forecasts), torch.cat(self.targets)
        return ((forecast - target) ** 2).mean(0).sqrt().mean()


def main():
    torch.manual_seed(4)
    model = nn.Sequential(Causal(40, 32, 1), Causal(32, 32, 2), Causal(32, 32, 4), nn.AdaptiveAvgPool1d(24), nn.Conv1d(32, 40, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    watch = Epoch()
    for step, (x, y) in enumerate(DataLoader(Load(), batch_size=32)):
        forecast = model(x)
        loss = nn.functional.huber_loss(forecast, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rmse = watch.add(x, forecast, y)
        if step % 100 == 0:
            print(step, float(rmse), flush=True)


if __name__ == "__main__":
    main()

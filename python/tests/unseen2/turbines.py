"""Anomalies of wind turbines: a convolutional autoencoder over windows, tracked on an experiment server."""
import json
import multiprocessing
import os
import tempfile
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tracking(BaseHTTPRequestHandler):
    """Stands for the team's experiment server, which is 6 ms away."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(0.006)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def serve(port):
    server = HTTPServer(("127.0.0.1", 0), Tracking)
    port.send(server.server_port)
    server.serve_forever()


def log_metric(url, name, value, step):
    body = json.dumps({"key": name, "value": value, "step": step}).encode()
    request = urllib.request.Request(url + "/api/2.0/runs/log-metric", body, {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=10).read()


class Autoencoder(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(channels, 24, 5, stride=2, padding=2), nn.GELU(),
            nn.Conv1d(24, 32, 5, stride=2, padding=2), nn.GELU(),
            nn.Conv1d(32, 12, 3, stride=2, padding=1),
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose1d(12, 32, 4, stride=2, padding=1), nn.GELU(),
            nn.ConvTranspose1d(32, 24, 4, stride=2, padding=1), nn.GELU(),
            nn.ConvTranspose1d(24, channels, 4, stride=2, padding=1),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


def make_windows(count):
    phase = torch.rand(count, 8, 1) * 6.28
    rate = torch.rand(count, 8, 1) * 0.4 + 0.05
    time = torch.arange(128.0)
    return torch.sin(rate * time + phase) + 0.1 * torch.randn(count, 8, 128)


def main():
    here, there = multiprocessing.Pipe()
    multiprocessing.Process(target=serve, args=(there,), daemon=True).start()
    url = f"http://127.0.0.1:{here.recv()}"
    torch.manual_seed(5)
    folder = tempfile.mkdtemp(prefix="turbines-")
    train = DataLoader(TensorDataset(make_windows(9600)), batch_size=64, shuffle=True, drop_last=True)
    valid = make_windows(512)
    model = Autoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 7 * len(train))
    step = 0
    for epoch in range(7):
        model.train()
        for (x,) in train:
            loss = nn.functional.mse_loss(model(x), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            step += 1
            log_metric(url, "loss", loss.item(), step)
            log_metric(url, "rate", schedule.get_last_lr()[0], step)
        model.eval()
        with torch.no_grad():
            error = nn.functional.mse_loss(model(valid), valid).item()
        print(f"epoch {epoch} validation {error:.4f}", flush=True)
    torch.save(model.state_dict(), os.path.join(folder, "model.pt"))


if __name__ == "__main__":
    main()

"""Values are logged by stand-ins for several libraries; after 15 of 20 steps the loss is no number any more."""

import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "stand_ins"))
import mlflow
import trackio
from tensorboardX import SummaryWriter
from wandb.sdk.wandb_run import Run

torch.manual_seed(0)
torch.set_num_threads(1)
run, writer = Run(), SummaryWriter()
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(20):
    optimizer.zero_grad()
    loss = model(torch.randn(64, 32)).square().mean()
    loss.backward()
    optimizer.step()
    value = loss.item() if step < 15 else float("nan")
    print(value.hex())
    answers = [
        run.log({"loss": value, "tensor": loss.detach(), "text": "x", "flag": True}, step=step),
        writer.add_scalar("tb/accuracy", 0.5, global_step=step),
        writer.add_scalars("tb", {"a": 1, "b": 2.0}, step),
        mlflow.log_metric("mlflow one", 1.0),
        mlflow.log_metrics(metrics={"mlflow two": 2.0, "loss": value}),
        trackio.log({"trackio": 3.0}),
    ]
    print(answers[1], answers[3:])

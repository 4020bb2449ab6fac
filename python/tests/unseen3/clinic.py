"""Length of stay in hospital: a common body, and one head for each ward."""
import time

import torch
import torch.nn.functional as F
from torch import nn

WARDS = 180


class Patients:
    """Yields batches in which all patients are of a few wards, as the registry delivers them."""

    def __init__(self, count=36000, width=96, per_batch=3, batch=384):
        gen = torch.Generator().manual_seed(12)
        self.x = torch.randn(count, width, generator=gen)
        self.ward = torch.arange(count) * WARDS // count
        effect = torch.randn(WARDS, width, generator=gen) * 0.1
        self.y = (self.x * effect[self.ward]).sum(1) + 0.1 * torch.randn(count, generator=gen)
        self.rows = [(self.ward == w).nonzero().squeeze(1) for w in range(WARDS)]
        self.per_batch, self.batch = per_batch, batch

    def __iter__(self):
        wards = torch.randperm(WARDS).view(-1, self.per_batch)
        for some in wards.tolist():
            parts = []
            for w in some:
                rows = self.rows[w]
                rows = rows[torch.randint(0, len(rows), (self.batch // self.per_batch,))]
                parts.append((w, self.x[rows], self.y[rows]))
            yield parts


class StayModel(nn.Module):
    def __init__(self, width=96, hidden=768):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(),
                                  nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, 256))
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Linear(256, 64), nn.GELU(), nn.Linear(64, 1)) for _ in range(WARDS))

    def forward(self, parts):
        h = self.body(torch.cat([x for _, x, _ in parts]))
        out = []
        for (ward, x, _), rows in zip(parts, h.split([len(x) for _, x, _ in parts])):
            out.append(self.heads[ward](rows).squeeze(1))
        return torch.cat(out)


class Trainer:
    def __init__(self, model, lr=1e-3):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)

    def step(self, parts):
        self.optimizer.zero_grad(set_to_none=False)
        days = torch.cat([y for _, _, y in parts])
        loss = F.huber_loss(self.model(parts), days)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self, patients, epochs):
        for epoch in range(epochs):
            losses = torch.stack([self.step(parts) for parts in patients])
            print(f"epoch {epoch}: loss {losses.mean().item():.4f}")


def main():
    torch.manual_seed(0)
    trainer = Trainer(StayModel())
    patients = Patients()
    began = time.time()
    trainer.run(patients, epochs=6)
    print(f"trained in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()

"""Work that need not be done. `validates`: after every fifth batch (Lightning); `tensors`: an optimizer that goes
from parameter to parameter; `lists`: the list of the data is made and sorted at each epoch's start. Repaired: once an
epoch; all at once; once."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

what, repaired = sys.argv[1], "repaired" in sys.argv


def validate_often():
    import lightning

    class Classifier(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Conv2d(1, 64, 5, 2), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 144, 10))

        def training_step(self, batch, index):
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch, index):
            self.log("loss", nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=1e-3)

    training, held_out = (TensorDataset(torch.randn(n, 1, 28, 28), torch.randint(10, (n,))) for n in (256 * 100, 2560))
    quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    often = dict(val_check_interval=1.0 if repaired else 5, num_sanity_val_steps=0)
    trainer = lightning.Trainer(max_epochs=2 if repaired else 1, accelerator="cpu", **quiet, **often)
    trainer.fit(Classifier(), DataLoader(training, 256), DataLoader(held_out, 256))


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(24, 24) for _ in range(400))

    def forward(self, x):
        weights = torch.stack([part.weight for part in self.parts])
        return torch.einsum("bi,eio->beo", x, weights).mean(1)


def step_each_tensor():
    model = Experts()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=repaired, fused=False)
    x, y = torch.randn(384, 24), torch.randn(384, 24)
    for _ in range(200):
        optimizer.zero_grad(set_to_none=False)
        (model(x) - y).square().mean().backward()
        optimizer.step()


class Catalogue(Dataset):
    kept = None

    def __init__(self):
        if Catalogue.kept is None or not repaired:
            names = [f"{(k * 7919) % 99991:08}/{k}.pt" for k in range(300_000)]
            Catalogue.kept = sorted(names, key=lambda name: (name[::-1], name))
        self.names = Catalogue.kept

    def __len__(self):
        return 64 * 20

    def __getitem__(self, place):
        return torch.full((90,), len(self.names[place]) / 20)


def list_each_epoch():
    model = nn.Sequential(nn.Linear(90, 512), nn.Hardswish(), nn.Linear(512, 512), nn.Hardswish(), nn.Linear(512, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for _ in range(12):
        for x in DataLoader(Catalogue(), batch_size=64, shuffle=True):
            optimizer.zero_grad()
            model(x.repeat(12, 1)).square().mean().backward()
            optimizer.step()


torch.manual_seed(0)
torch.set_num_threads(1)
{"validates": validate_often, "tensors": step_each_tensor, "lists": list_each_epoch}[what]()

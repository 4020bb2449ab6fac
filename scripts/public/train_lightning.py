"""Lightning: its Trainer on its demo `BoringModel`, with validation and checkpoints."""

import counting
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.demos.boring_classes import BoringDataModule, BoringModel

counting.start()
model = BoringModel()
trainer = Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_progress_bar=False, enable_checkpointing=True)
trainer.fit(model, datamodule=BoringDataModule())
print(trainer.global_step, torch.cat([p.flatten() for p in model.parameters()]).sum().item())

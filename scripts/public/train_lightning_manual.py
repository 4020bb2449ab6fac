"""Lightning: its Trainer on its demo `ManualOptimBoringModel`, which calls backward and the optimizer itself."""

import counting
from lightning.pytorch import Trainer
from lightning.pytorch.demos.boring_classes import BoringDataModule, ManualOptimBoringModel

counting.start()
trainer = Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_progress_bar=False)
trainer.fit(ManualOptimBoringModel(), datamodule=BoringDataModule())

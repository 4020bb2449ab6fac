"""Lightning's manual optimization, with two optimizers in turn."""

import logging
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.encoder, self.decoder = nn.Linear(16, 8), nn.Linear(8, 16)

    def training_step(self, batch, index):
        for optimizer in self.optimizers():
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.decoder(self.encoder(batch[0])), batch[0])
            self.manual_backward(loss)
            optimizer.step()
        print(loss.item().hex())

    def configure_optimizers(self):
        return [torch.optim.SGD(part.parameters(), lr=1e-2) for part in (self.encoder, self.decoder)]


torch.manual_seed(0)
torch.set_num_threads(1)
trainer = lightning.Trainer(
    max_epochs=1,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Module(), DataLoader(TensorDataset(torch.randn(640, 16)), batch_size=32))

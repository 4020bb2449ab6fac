"""timm: model, loader, optimizer and schedule by its factories, in the order of its training script."""

import counting
import numpy
import timm
import torch
from PIL import Image
from timm.data import create_loader
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2

counting.start()
noise = numpy.random.default_rng(0)


class Images(torch.utils.data.Dataset):
    """Noise, as pictures; the loader sets the transform."""

    transform = None

    def __len__(self):
        """How many."""
        return 32

    def __getitem__(self, index):
        """A picture and its class."""
        return self.transform(Image.fromarray(noise.integers(0, 255, (40, 40, 3), dtype=numpy.uint8))), index % 4


model = timm.create_model("resnet10t", num_classes=4)
loader = create_loader(
    Images(), (3, 32, 32), 8, is_training=True, num_workers=0, device=torch.device("cpu"), use_prefetcher=False
)
optimizer = create_optimizer_v2(model, opt="adamw", lr=0.001)
scheduler, epochs = create_scheduler_v2(optimizer, num_epochs=3, warmup_epochs=1)
for epoch in range(3):
    model.train()
    for pictures, classes in loader:
        loss = torch.nn.functional.cross_entropy(model(pictures), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    scheduler.step(epoch + 1)

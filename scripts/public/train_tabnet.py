"""pytorch-tabnet: `TabNetRegressor`, as in its README."""

import counting
import torch
from pytorch_tabnet.tab_model import TabNetRegressor

counting.start()
x, y = torch.randn(640, 8).numpy(), torch.randn(640, 1).numpy()
net = TabNetRegressor(verbose=0)
net.fit(x, y, eval_set=[(x, y)], max_epochs=3, batch_size=64, virtual_batch_size=32)
print(net.history["loss"], net.history["val_0_mse"])

"""pytorch-metric-learning: its `MetricLossOnly` trainer, which has an optimizer for each part of the model."""

import counting
import torch
from pytorch_metric_learning import losses, miners, samplers, trainers
from torch.utils.data import TensorDataset

counting.start(every_optimizer=False)
labels = torch.arange(10).repeat(64)
data = TensorDataset(torch.randn(640, 16) + labels[:, None], labels)
trunk, embedder = torch.nn.Linear(16, 32), torch.nn.Linear(32, 8)
trainer = trainers.MetricLossOnly(
    models={"trunk": trunk, "embedder": embedder},
    optimizers={f"{m}_optimizer": torch.optim.Adam(globals()[m].parameters()) for m in ("trunk", "embedder")},
    batch_size=32,
    loss_funcs={"metric_loss": losses.TripletMarginLoss()},
    mining_funcs={"tuple_miner": miners.MultiSimilarityMiner()},
    dataset=data,
    sampler=samplers.MPerClassSampler(labels, m=4, length_before_new_iter=640),
    dataloader_num_workers=0,
    data_device=torch.device("cpu"),
    end_of_iteration_hook=lambda _: counting.count([*trunk.parameters(), *embedder.parameters()]),
)
trainer.train(num_epochs=3)
print(trainer.losses)

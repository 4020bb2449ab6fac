"""PyTorch-Ignite: `create_supervised_trainer`, as in its README."""

import counting
import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.metrics import MeanSquaredError
from torch.utils.data import DataLoader, TensorDataset

counting.start()
loader = DataLoader(TensorDataset(torch.randn(640, 8), torch.randn(640, 1)), batch_size=32)
model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
trainer = create_supervised_trainer(model, torch.optim.SGD(model.parameters(), lr=0.01), torch.nn.MSELoss())
evaluator = create_supervised_evaluator(model, metrics={"mse": MeanSquaredError()})


@trainer.on(Events.EPOCH_COMPLETED)
def validate(engine):
    """Prints the last loss, and the error over all data."""
    evaluator.run(loader)
    print(engine.state.output, evaluator.state.metrics)


trainer.run(loader, max_epochs=5)

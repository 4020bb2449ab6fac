"""Ten ordinary loops with no mistake in them; the argument says which one to run.

Steps take 20 ms or more, so that a framework's fixed cost per step is small beside them.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS = 72
BATCH = 512
WIDTH = 448


def mlp() -> nn.Module:
    hidden = [layer for _ in range(3) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    return nn.Sequential(nn.Linear(64, WIDTH), nn.ReLU(), *hidden, nn.Linear(WIDTH, 1))


def samples(steps: int, extra: int = 0) -> TensorDataset:
    size = steps * BATCH + extra
    return TensorDataset(torch.randn(size, 64), torch.randn(size, 1))


def batches(steps: int = STEPS, extra: int = 0, **options: object) -> Iterator[list[torch.Tensor]]:
    """Loads so many batches, and a last one of `extra` samples; copies them whole, not sample by sample."""
    data = samples(steps, extra)
    sampler = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(data), BATCH, drop_last=False)
    return iter(DataLoader(data, sampler=sampler, batch_size=None, **options))


def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def plain() -> None:
    """Reads the loss of every step: on a CPU nothing waits for it."""
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    losses = [step(model, optimizer, x, y).item() for x, y in batches(extra=17)]
    assert len(losses) == STEPS + 1


def scaler() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    for x, y in batches():
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def micro_batches() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for place, (x, y) in enumerate(batches(2 * STEPS)):
        (nn.functional.mse_loss(model(x), y) / 2).backward()
        if place % 2:
            optimizer.step()
            optimizer.zero_grad()


def clips_and_schedules() -> None:
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for x, y in batches():
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()


def evaluates() -> None:
    """Each epoch with an evaluation, and a checkpoint at the end."""
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for _ in range(3):
        model.train()
        for x, y in batches(STEPS // 3):
            step(model, optimizer, x, y)
        model.eval()
        with torch.no_grad():
            for x, _ in batches(3):
                model(x)
    with tempfile.TemporaryFile() as file:
        torch.save(model.state_dict(), file)


def workers() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for x, y in batches(num_workers=1, prefetch_factor=4):
        step(model, optimizer, x, y)


def lightning_fit() -> None:
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = mlp()

        def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
            return nn.functional.mse_loss(self.model(batch[0]), batch[1])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=1e-4)

    quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", **quiet)
    trainer.fit(Module(), DataLoader(samples(STEPS), batch_size=BATCH))


def trainer() -> None:
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    size = dict(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=512)
    model = BertForSequenceClassification(BertConfig(vocab_size=50, max_position_embeddings=32, **size))
    texts = [{"input_ids": torch.randint(50, (24,)), "labels": torch.randint(2, ())} for _ in range(16 * STEPS)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=16,
            num_train_epochs=1,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        Trainer(model, arguments, train_dataset=texts).train()


def whole_graph() -> None:
    from torch_geometric.nn.models import GCN

    model = GCN(256, 64, 3, 8)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    x, edges, y = torch.randn(2000, 256), torch.randint(2000, (2, 8000)), torch.randint(8, (2000,))
    for _ in range(STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x, edges), y).backward()
        optimizer.step()


def graphs() -> None:
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader as GraphLoader
    from torch_geometric.nn import GCN, global_mean_pool

    def graph() -> Data:
        nodes = int(torch.randint(30, 60, ()))
        return Data(x=torch.randn(nodes, 64), edge_index=torch.randint(nodes, (2, 4 * nodes)), y=torch.randn(1, 1))

    model = GCN(64, 256, 4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for batch in GraphLoader([graph() for _ in range(16 * STEPS)], batch_size=16):
        optimizer.zero_grad()
        out = global_mean_pool(model(batch.x, batch.edge_index), batch.batch)
        nn.functional.mse_loss(out, batch.y).backward()
        optimizer.step()


LOOPS: list[Callable[[], None]] = [
    plain,
    scaler,
    micro_batches,
    clips_and_schedules,
    evaluates,
    workers,
    lightning_fit,
    trainer,
    whole_graph,
    graphs,
]

if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    {loop.__name__: loop for loop in LOOPS}[sys.argv[1]]()

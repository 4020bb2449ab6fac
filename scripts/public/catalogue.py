"""The programs: a row here and a file `train_NAME.py` beside it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """One training."""

    package: str
    """On PyPI."""
    what: str
    """Which of the package's programs or classes trains, for the table."""
    source: str = "library"
    """`command`, `module` or `demo`: code in the wheel runs as it is. `library`: lines of ours call the package's own
    trainer, or follow its tutorial."""
    also: tuple[str, ...] = ()
    """Packages that it needs and does not ask for."""

    @property
    def packages(self) -> list[str]:
        """What pip is to install."""
        return [self.package, *self.also]


PROGRAMS = {
    "accelerate": Program("accelerate", "`accelerate.test_utils.scripts.test_script`", "module"),
    "chemprop": Program("chemprop", "`chemprop train`", "command"),
    "fastai": Program("fastai", "`fastai.test_utils.synth_learner`", "demo"),
    "lightning": Program("lightning", "`Trainer` with the demo `BoringModel`", "demo"),
    "lightning_manual": Program("lightning", "`Trainer` with the demo `ManualOptimBoringModel`", "demo"),
    "pykeen": Program("pykeen", "`pykeen train transe --dataset nations`", "command"),
    "stanza": Program("stanza", "`python -m stanza.models.charlm`", "module"),
    "trl": Program("trl", "`python -m trl.scripts.sft`", "module"),
    "ultralytics": Program("ultralytics", "`yolo train`", "command"),
    "gpytorch": Program("gpytorch", "exact regression of its tutorial"),
    "ignite": Program("pytorch-ignite", "`create_supervised_trainer`, with an evaluator"),
    "metric_learning": Program("pytorch-metric-learning", "`MetricLossOnly`, two optimizers"),
    "peft": Program("peft", "LoRA, with transformers' `Trainer`"),
    "pyg": Program("torch-geometric", "`GCN` on `FakeDataset`, with its `DataLoader`"),
    "pyro": Program("pyro-ppl", "`SVI`"),
    "sentence_transformers": Program("sentence-transformers", "`SentenceTransformerTrainer`", also=("datasets",)),
    "skorch": Program("skorch", "`NeuralNetRegressor`"),
    "stable_baselines3": Program("stable-baselines3", "`PPO`"),
    "tabnet": Program("pytorch-tabnet", "`TabNetRegressor`"),
    "timm": Program("timm", "`resnet10t`, with its loader, optimizer and schedule"),
    "transformers": Program("transformers", "`Trainer`, with accumulated gradients"),
}

"""Libraries that log a training: their calls are spans, so that the finding about a gap that they fill names them.

The numbers that they are given are counters.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .. import _native
from . import results
from .logged import Read, postfix, reader, several, several_below, single
from .patching import defining, watch

_WRITES = ("add_histogram", "add_image", "add_images", "add_figure", "flush")


def install_tensorboard(writer: ModuleType) -> None:
    """Hooks ``torch.utils.tensorboard.writer``, or the same of ``tensorboardX``."""
    _log(writer.SummaryWriter, "tensorboard", "add_scalar", single(1, "tag", "scalar_value"))
    _log(writer.SummaryWriter, "tensorboard", "add_scalars", several_below)
    for function in _WRITES:
        _log(writer.SummaryWriter, "tensorboard", function)
    results.watch_tensorboard(writer)


def install_wandb(run: ModuleType) -> None:
    """Hooks ``wandb.sdk.wandb_run``."""
    _log(run.Run, "wandb", "log", several(1, "data"))
    results.watch_wandb(run)


def install_mlflow(fluent: ModuleType) -> None:
    """Hooks ``mlflow.tracking.fluent``."""
    _log(fluent, "mlflow", "log_metric", single(0, "key", "value"))
    _log(fluent, "mlflow", "log_metrics", several(0, "metrics"))
    _log(fluent, "mlflow", "log_artifact")
    results.watch_mlflow(fluent)


def install_trackio(run: ModuleType) -> None:
    """Hooks ``trackio.run``."""
    _log(run.Run, "trackio", "log", several(1, "metrics"))
    results.watch_trackio(run)


def install_lightning(loggers: ModuleType) -> None:
    """Hooks the loggers of ``lightning.pytorch.loggers``, or of ``pytorch_lightning.loggers``."""
    kinds = [kind for kind in vars(loggers).values() if isinstance(kind, type) and kind is not loggers.Logger]
    for kind in {defining(kind, "log_metrics") for kind in kinds}:
        _log(kind, "lightning", "log_metrics", several(1, "metrics"))


def install_transformers(trainer: type) -> None:
    """Hooks Hugging Face's ``Trainer``."""
    _log(trainer, "transformers", "log", several(1, "logs"))


def install_tqdm(std: ModuleType) -> None:
    """Hooks ``tqdm.std``."""
    _log(std.tqdm, "tqdm", "set_postfix", postfix)


def _log(owner: Any, library: str, function: str, read: Read | None = None) -> None:
    reads = None if read is None else reader(library, read)
    watch(owner, function, _native.OF_ROOTS - _native.span_name(f"{library} {function}"), reads)

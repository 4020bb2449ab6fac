"""Libraries that log a training: their calls are spans, so that the finding about a gap that they fill names them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .. import _native
from .patching import watch

_WRITES = ("add_scalar", "add_scalars", "add_histogram", "add_image", "add_images", "add_figure", "flush")
_LOGS = ("log_metric", "log_metrics", "log_artifact")


def install_tensorboard(writer: ModuleType) -> None:
    """Hooks ``torch.utils.tensorboard.writer``."""
    _name(writer.SummaryWriter, "tensorboard", _WRITES)


def install_wandb(run: ModuleType) -> None:
    """Hooks ``wandb.sdk.wandb_run``."""
    _name(run.Run, "wandb", ("log",))


def install_mlflow(fluent: ModuleType) -> None:
    """Hooks ``mlflow.tracking.fluent``."""
    _name(fluent, "mlflow", _LOGS)


def _name(owner: Any, library: str, functions: tuple[str, ...]) -> None:
    for function in functions:
        watch(owner, function, _native.OF_ROOTS - _native.span_name(f"{library} {function}"))

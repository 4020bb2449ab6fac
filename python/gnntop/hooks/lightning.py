"""Lightning: its steps as forward and validation, and the batch's way to the device.

Lightning calls its module's ``training_step``, not ``forward``, so the forward phase includes the loss.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .. import _native
from . import goals
from .patching import patch, watch
from .phases import reported_as


def install(strategy: ModuleType) -> None:
    """Hooks ``lightning.pytorch.strategies.strategy``, or the same of ``pytorch_lightning``."""
    kind = strategy.Strategy
    _, after = reported_as(_native.FORWARD)
    patch(kind, "training_step", _before_training, after)
    for step in ("validation_step", "test_step", "predict_step"):
        watch(kind, step, _native.EVALUATION)
    watch(kind, "batch_to_device", _native.TRANSFER)
    goals.install_lightning(kind)


def _before_training(args: tuple[Any, ...]) -> int | None:
    # With manual optimization, backward and optimizer are inside: then the modules' own calls are recorded.
    if not args[0].lightning_module.automatic_optimization:
        return None
    return _native.work_begin(_native.FORWARD)

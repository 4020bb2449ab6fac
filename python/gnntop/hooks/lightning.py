"""Lightning: its steps as forward and validation, and the batch's way to the device.

Lightning calls its module's ``training_step``, not ``forward``, so the forward phase includes the loss.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .loop import loop
from .patching import patch
from .phases import TRANSFER


def install(strategy: ModuleType) -> None:
    """Hooks ``lightning.pytorch.strategies.strategy``, or the same of ``pytorch_lightning``."""
    kind = strategy.Strategy
    patch(kind, "training_step", _before_training, _after_forward)
    patch(kind, "validation_step", _before_validation, _after_forward)
    patch(kind, "batch_to_device", *TRANSFER)


def _before_training(args: tuple[Any, ...]) -> int | None:
    # With manual optimization, backward and optimizer are inside: then the modules' own calls are recorded.
    if not args[0].lightning_module.automatic_optimization:
        return None
    return loop.forward_begin(has_gradients=True, is_training=True)


def _before_validation(_: tuple[Any, ...]) -> int | None:
    return loop.forward_begin(has_gradients=False, is_training=False)


def _after_forward(depth: int, _: object) -> None:
    loop.forward_end(depth)

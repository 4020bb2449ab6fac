"""Hugging Face's Trainer and Accelerate: the batch's way to the device, checkpoints, what is logged, the goal."""

from __future__ import annotations

from types import ModuleType

from .. import _native
from . import goals
from .loggers import install_transformers
from .patching import patch, watch
from .phases import TRANSFER


def install_trainer(trainer: ModuleType) -> None:
    """Hooks ``transformers.trainer``."""
    watch(trainer.Trainer, "_prepare_inputs", _native.TRANSFER)
    watch(trainer.Trainer, "_save_checkpoint", _native.CHECKPOINT)
    install_transformers(trainer.Trainer)
    goals.install_transformers(trainer.CallbackHandler)


def install_accelerate(data_loader: ModuleType) -> None:
    """Hooks ``accelerate.data_loader``."""
    patch(data_loader, "send_to_device", *TRANSFER)

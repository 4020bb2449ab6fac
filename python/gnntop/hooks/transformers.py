"""Hugging Face's Trainer and Accelerate: the batch's way to the device, and checkpoints."""

from __future__ import annotations

from types import ModuleType

from .patching import patch
from .phases import CHECKPOINT, TRANSFER


def install_trainer(trainer: ModuleType) -> None:
    """Hooks ``transformers.trainer``."""
    patch(trainer.Trainer, "_prepare_inputs", *TRANSFER)
    patch(trainer.Trainer, "_save_checkpoint", *CHECKPOINT)


def install_accelerate(data_loader: ModuleType) -> None:
    """Hooks ``accelerate.data_loader``."""
    patch(data_loader, "send_to_device", *TRANSFER)

"""Hugging Face's Trainer and Accelerate: the batch's way to the device, and checkpoints."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from gnntop.hooks.loop import loop
from gnntop.hooks.patching import patch


def install_trainer(trainer: ModuleType) -> None:
    """Hooks ``transformers.trainer``."""
    patch(trainer.Trainer, "_prepare_inputs", _before_transfer, _after_transfer)
    patch(trainer.Trainer, "_save_checkpoint", _before_save, _after_save)


def install_accelerate(data_loader: ModuleType) -> None:
    """Hooks ``accelerate.data_loader``."""
    patch(data_loader, "send_to_device", _before_transfer, _after_transfer)


def _before_transfer(_: tuple[Any, ...]) -> int | None:
    return loop.transfer_begin()


def _after_transfer(depth: int, _: object) -> None:
    loop.transfer_end(depth)


def _before_save(_: tuple[Any, ...]) -> int | None:
    return loop.save_begin()


def _after_save(depth: int, _: object) -> None:
    loop.save_end(depth)

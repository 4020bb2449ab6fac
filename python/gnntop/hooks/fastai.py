"""fastai: its optimizers, which are not torch's."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .. import _native
from .patching import patch
from .phases import reported_as


def install(optimizer: ModuleType) -> None:
    """Hooks ``fastai.optimizer``."""
    patch(optimizer.Optimizer, "step", _before_step, _after_step)
    patch(optimizer.Optimizer, "zero_grad", *reported_as(_native.ZERO_GRAD))


def _before_step(args: tuple[Any, ...]) -> tuple[int, int] | None:
    token = _native.work_begin(_native.OPTIMIZER)
    return None if token is None else (token, id(args[0]))


def _after_step(begun: tuple[int, int], _: object) -> None:
    token, optimizer = begun
    _native.work_end(_native.OPTIMIZER, token, optimizer)

"""How far a training is meant to go: what the ``Trainer`` of Lightning or Hugging Face says when it begins.

Asked once for each training. A ``for epoch in range(10)`` says nothing; ``gnntop run --goal`` does.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from .. import _native
from .patching import on_uninstall, patch

_has_trained = False


def install_transformers(handler: type) -> None:
    """Hooks the ``CallbackHandler`` of ``transformers``."""
    patch(handler, "on_train_begin", _of_transformers, _nothing)
    on_uninstall.append(_forget)


def install_lightning(strategy: type) -> None:
    """Hooks the ``Strategy`` of Lightning."""
    patch(strategy, "on_train_start", _of_lightning, _nothing)
    on_uninstall.append(_forget)


def _nothing(_token: Any, _result: Any) -> None:
    pass


def _of_transformers(args: tuple[Any, ...]) -> None:
    state = args[2]
    _tell(state.global_step, _more(state.max_steps, state.global_step), "TrainingArguments")


def _of_lightning(args: tuple[Any, ...]) -> None:
    module = args[0].lightning_module
    trainer = module.trainer
    done, epochs, batches = trainer.global_step, trainer.max_epochs, trainer.num_training_batches
    if not module.automatic_optimization:
        # How many steps a batch is, only the module knows.
        if type(epochs) is int and epochs > 0:
            _native.goal(0, epochs, "Trainer.max_epochs")
        return
    by_steps = _more(trainer.max_steps, done)
    by_epochs = 0
    if type(epochs) is int and type(batches) is int:
        by_epochs = max(epochs - trainer.current_epoch, 0) * ceil(batches / trainer.accumulate_grad_batches)
    if by_steps and (not by_epochs or by_steps <= by_epochs):
        _tell(done, by_steps, "Trainer.max_steps")
    else:
        _tell(done, by_epochs, "Trainer.max_epochs")


def _more(most: Any, done: int) -> int:
    """Steps that are left until this many; 0 where these are no number, or none are left."""
    return max(most - done, 0) if type(most) is int and most > 0 else 0


def _tell(done: int, more: int, by: str) -> None:
    global _has_trained
    if done > 0 and not _has_trained:
        _native.resumed(done)  # a checkpoint was loaded: nothing has trained in this process
    _has_trained = True
    if more > 0:
        _native.goal(more, 0, by)


def _forget() -> None:
    global _has_trained
    _has_trained = False

"""Phases that several libraries have: what `patch` calls before and after the function that does the work.

Used as ``patch(Data, "to", *TRANSFER)``.
"""

from __future__ import annotations

from typing import Any

from .loop import loop
from .patching import After, Before


def _before_sample(_: tuple[Any, ...]) -> int | None:
    return loop.loading_begin("sample")


def _before_gather(_: tuple[Any, ...]) -> int | None:
    return loop.loading_begin("gather")


def _after_loading(depth: int, _: object) -> None:
    loop.loading_end(depth)


def _before_transfer(_: tuple[Any, ...]) -> int | None:
    return loop.transfer_begin()


def _after_transfer(depth: int, _: object) -> None:
    loop.transfer_end(depth)


def _before_save(_: tuple[Any, ...]) -> int | None:
    return loop.save_begin()


def _after_save(depth: int, _: object) -> None:
    loop.save_end(depth)


SAMPLE: tuple[Before, After] = (_before_sample, _after_loading)
"""A neighbourhood is drawn."""
GATHER: tuple[Before, After] = (_before_gather, _after_loading)
"""The features of the drawn nodes are collected."""
TRANSFER: tuple[Before, After] = (_before_transfer, _after_transfer)
"""A batch is moved to a device."""
CHECKPOINT: tuple[Before, After] = (_before_save, _after_save)
"""A checkpoint is written."""

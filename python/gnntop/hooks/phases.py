"""Work that several libraries do: what `patch` calls before and after the function that does it.

Used as ``patch(Data, "to", *TRANSFER)``.
"""

from __future__ import annotations

from typing import Any

from .. import _native
from .patching import After, Before


def reported_as(work: int) -> tuple[Before, After]:
    """Reports a call as this work of the training loop."""

    def before(_: tuple[Any, ...]) -> int | None:
        return _native.work_begin(work)

    def after(token: int, _: object) -> None:
        _native.work_end(work, token)

    return before, after


SAMPLE = reported_as(_native.SAMPLE)
"""A neighbourhood is drawn."""
GATHER = reported_as(_native.GATHER)
"""The features of the drawn nodes are collected."""
TRANSFER = reported_as(_native.TRANSFER)
"""A batch is moved to a device."""
COLLECTIVE = reported_as(_native.COLLECTIVE)
"""The program itself communicates with other ranks."""
CHECKPOINT = reported_as(_native.CHECKPOINT)
"""A checkpoint is written."""

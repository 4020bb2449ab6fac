"""Work that several libraries do, in functions that torch.compile may trace: what `patch` calls before and after them.

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


TRANSFER = reported_as(_native.TRANSFER)
"""A batch is moved to a device."""
COLLECTIVE = reported_as(_native.COLLECTIVE)
"""The program itself communicates with other ranks."""

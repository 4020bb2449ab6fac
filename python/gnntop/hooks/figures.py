"""What a tracker's run gets to know of a session: a few flat keys below ``gnntop/``, and the report as a page."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

from .. import _native, _program

PAGE = "gnntop-report.html"
"""The page's file name."""
_MAX_TEXT = 1000
"""Characters of a text."""


class Figures:
    """The newest figures of this process's session. A folder of its own is there as long as the ``with`` block."""

    numbers: dict[str, float]
    """By key; keys have a unit at their end where they have one."""
    texts: dict[str, str]
    steps: int
    """Steps so far, for histories that have a place for it."""
    folder: str
    """For files that the tracker copies."""

    def __enter__(self) -> Figures:
        """Asks ``gnntop report``. Raises ``RuntimeError`` with its words if there is nothing to report."""
        _native.flush()
        self.folder = tempfile.mkdtemp(prefix="gnntop-")
        try:
            report: dict[str, Any] = json.loads(_program.ask_report("--json"))
        except BaseException:
            self.__exit__()
            raise
        self.numbers, self.texts = dict(_numbers(report)), dict(_texts(report))
        self.steps = int(report["steps"]["total"])
        return self

    def __exit__(self, *_: object) -> None:
        """Removes the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def page(self, folder: str) -> str:
        """Writes the report as a page into this folder, instead of an older one, and returns its path."""
        path = os.path.join(folder, PAGE)
        _program.ask_report("--html", "--output", path, "--force")
        return path


def _numbers(report: dict[str, Any]) -> Iterator[tuple[str, float]]:
    yield "gnntop/steps", report["steps"]["total"]
    rate = report["throughput"]["steps_per_s"]
    if rate is not None:
        yield "gnntop/steps_per_s", rate
    for phase in report["phases"]:
        name = phase["name"]
        if name == "period":
            continue
        if name == "step":
            for percentile in ("p50", "p99"):
                if phase[f"{percentile}_ns"] is not None:
                    yield f"gnntop/step_{percentile}_ms", phase[f"{percentile}_ns"] / 1e6
        elif phase["share"] is not None:
            yield f"gnntop/share/{name}", phase["share"]
    for finding in _findings(report):
        if finding["share"] is not None:
            yield f"gnntop/finding/{finding['kind']}", finding["share"]
    energy = report["energy"] or {}
    total, step = energy.get("total") or {}, energy.get("step") or {}
    for key, part in (("energy_J", total.get("device")), ("energy_per_step_J", step)):
        if part and part.get("joules") is not None:
            yield f"gnntop/{key}", part["joules"]


def _texts(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if report["verdict"]:
        yield "gnntop/verdict", str(report["verdict"])[:_MAX_TEXT]
    lines = [f"{finding['kind']}: {finding['summary']}" for finding in _findings(report)]
    if lines:
        yield "gnntop/findings", "\n".join(lines)[:_MAX_TEXT]


def _findings(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The findings, of each kind the first, which is the largest."""
    found: dict[str, dict[str, Any]] = {}
    for finding in report["findings"]["found"]:
        found.setdefault(finding["kind"], finding)
    return list(found.values())

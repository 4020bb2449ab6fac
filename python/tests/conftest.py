"""What the tests share: the package on the path, and a native part that only notes what it is told."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


class Recorder:
    """Stands in for the native part: keeps what was recorded."""

    def __init__(self) -> None:
        self.names: list[str] = [""]
        self.facts: dict[str, str] = {}
        self.counters: list[tuple[str, float]] = []
        self.marks: list[str] = []

    def name(self, text: str) -> int:
        self.names.append(text)
        return len(self.names) - 1

    def counter(self, name: int, value: float) -> None:
        self.counters.append((self.names[name], value))

    def mark(self, name: int) -> None:
        self.marks.append(self.names[name])

    def fact(self, key: str, value: str) -> None:
        self.facts[key] = value

    def open_session(self, _name: str, facts: dict[str, str]) -> bool:
        self.facts.update(facts)
        return True

    def track(self, *_: Any) -> bool:
        return True


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """A native part that notes what it is told, in place of the real one."""
    from gnntop import _native

    recorder = Recorder()
    for name in ("counter", "fact", "mark", "open_session", "track"):
        monkeypatch.setattr(_native, name, getattr(recorder, name))
    monkeypatch.setattr(_native, "not_recorded", recorder.fact)
    for name in ("phase", "span_name", "counter_name", "reported_name", "mark_name"):
        monkeypatch.setattr(_native, name, recorder.name)
    return recorder

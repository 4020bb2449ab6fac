"""What the tests share: the package on the path, and a native part that only notes what it is told."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


class Recorder:
    """Stands in for the native part: a clock that ticks at every look, and a list of what was recorded."""

    def __init__(self) -> None:
        self.ticks = 0
        self.names: list[str] = [""]
        self.stamps: dict[int, int] = {}
        self.open: list[tuple[str, int]] = []
        self.spans: list[tuple[str, int, int]] = []
        self.steps: list[int] = []
        self.marks: list[str] = []
        self.timed: list[tuple[str, int, int]] = []
        self.epochs: list[int] = []
        self.batches: list[tuple[int, ...]] = []
        self.facts: dict[str, str] = {}
        self.sessions: list[str] = []
        self.inferred_names: list[str] = []
        self.counters: list[tuple[str, float]] = []

    def now(self) -> int:
        self.ticks += 1
        return self.ticks

    def name(self, text: str) -> int:
        self.names.append(text)
        return len(self.names) - 1

    def stamp(self, slot: int) -> None:
        self.stamps[slot] = self.now()

    def begin(self, name: int) -> int:
        self.open.append((self.names[name], self.now()))
        return len(self.open) - 1

    def end(self) -> None:
        self.end_to(len(self.open) - 1)

    def end_to(self, depth: int) -> None:
        while len(self.open) > depth:
            name, begin = self.open.pop()
            self.spans.append((name, begin, self.now()))

    def span_between(self, name: int, begin: int, end: int) -> None:
        if begin in self.stamps:
            self.spans.append((self.names[name], self.stamps[begin], self.now() if end == -1 else self.stamps[end]))

    def span_at(self, name: int, begin: int, end: int) -> None:
        self.spans.append((self.names[name], begin, end))

    def ns(self, ticks: int) -> float:
        return ticks * 1000.0

    def step(self) -> int:
        self.steps.append(self.now())
        return len(self.steps)

    def batch(self, *sizes: int) -> None:
        self.batches.append(sizes)

    def mark(self, name: int) -> None:
        self.marks.append(self.names[name])

    def mark_value(self, name: int, _value: float) -> None:
        self.marks.append(self.names[name])

    def counter(self, name: int, value: float) -> None:
        self.counters.append((self.names[name], value))

    def epoch(self, number: int) -> None:
        self.epochs.append(number)

    def mark_since(self, name: int, _slot: int) -> None:
        self.marks.append(self.names[name])

    def mark_at(self, name: int, begin: int, end: int) -> None:
        self.marks.append(self.names[name])
        self.timed.append((self.names[name], begin, end))

    def fact(self, key: str, value: str) -> None:
        self.facts[key] = value

    def inferred(self, name: int, _how: str) -> None:
        self.inferred_names.append(self.names[name])

    def open_session(self, name: str, facts: dict[str, str]) -> bool:
        self.sessions.append(name)
        self.facts.update(facts)
        return True

    def track(self, *_: Any) -> bool:
        return True

    def phases_of_steps(self) -> list[list[str]]:
        """The outermost spans of each step, in the order in which they began."""
        steps = []
        begin = 0
        for end in self.steps:
            inside = sorted((b, -e, name) for name, b, e in self.spans if begin <= b and e <= end)
            outer, until = [], 0
            for b, negative_end, name in inside:
                if b >= until:
                    outer.append(name)
                    until = -negative_end
            steps.append(outer)
            begin = end
        return steps


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """A native part that notes what it is told, in place of the real one."""
    from gnntop import _native

    recorder = Recorder()
    for name in ("now", "stamp", "begin", "end", "end_to", "span_between", "span_at", "ns", "step", "batch", "mark"):
        monkeypatch.setattr(_native, name, getattr(recorder, name))
    for name in (
        "mark_since",
        "mark_at",
        "mark_value",
        "epoch",
        "counter",
        "fact",
        "inferred",
        "open_session",
        "track",
    ):
        monkeypatch.setattr(_native, name, getattr(recorder, name))
    for name in ("phase", "span_name", "counter_name", "reported_name", "mark_name"):
        monkeypatch.setattr(_native, name, recorder.name)
    return recorder

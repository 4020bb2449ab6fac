"""The rule for what ends a step, without torch.

A training loop is a sequence of events: fetches of a batch, backward passes (K) and optimizer steps (O). The rule
receives K and O and decides which of them ends a step. A fetch never does, so loaders that look ahead do no harm, and
several backward passes before one optimizer step are micro-batches of one step.
"""

from __future__ import annotations

LONE_BACKWARDS = 50
"""After this many backward passes without an optimizer step, each backward pass is its own step."""
LEARNED_WITHIN = 8
"""After this many steps of one optimizer, others that have not stepped are no longer waited for."""
FORGOTTEN_AFTER = 64
"""After this many unordered steps of several optimizers, the search for an order starts again."""


class StepRule:
    """Decides whether a backward pass or an optimizer step ends a training step."""

    __slots__ = ("_backwards", "_cycle", "_limit", "_lone", "_seen")

    def __init__(self) -> None:
        self._backwards = 0
        # Backward passes since the last optimizer step, and how many may follow one another.
        self._lone = 0
        self._limit = LONE_BACKWARDS
        # For each optimizer: how many backward passes there had been at its last step.
        self._seen: dict[int, int] = {}
        self._cycle = Cycle()

    def expect(self, optimizers: set[int]) -> None:
        """Sets the optimizers, before the first of them steps."""
        self._cycle.expect(optimizers)

    def backward(self) -> bool:
        """Notes the end of a backward pass; returns whether it ends a step by itself."""
        self._backwards += 1
        self._lone += 1
        return self._lone > self._limit

    def optimizer(self, optimizer: int) -> bool:
        """Notes that an optimizer has stepped, or a scaler skipped its step; returns whether that ends a step."""
        if self._seen.get(optimizer, 0) == self._backwards:
            return False  # nothing was computed for it
        self._seen[optimizer] = self._backwards
        # A loop that accumulates more micro-batches than the limit is recognised here.
        if 2 * self._lone > self._limit:
            self._limit = 2 * self._lone
        self._lone = 0
        return self._cycle.alone == optimizer or self._cycle.ends(optimizer)


class Cycle:
    """The order in which several optimizers take turns. The last of a turn ends the step."""

    __slots__ = ("_expected", "_history", "_missing", "_period", "alone")

    def __init__(self) -> None:
        self.alone = 0
        """The only optimizer that steps; 0 if there are several, or it is not known yet."""
        self._expected: set[int] = set()
        self._history: list[int] = []
        # Those that have not stepped since the last step's end, while the order is being learned.
        self._missing: set[int] = set()
        # The learned order and the place in it.
        self._period: list[int] = []

    def expect(self, optimizers: set[int]) -> None:
        """Sets the optimizers. Starts to learn again if that changes anything."""
        if optimizers != self._expected:
            self._learn(optimizers)

    def ends(self, optimizer: int) -> bool:
        """Notes that an optimizer has stepped; returns whether it is the last of its turn."""
        if self._period:
            place = len(self._history) % len(self._period)
            if self._period[place] == optimizer:
                self._history.append(optimizer)
                is_last = place + 1 == len(self._period)
                if is_last:
                    self._history.clear()
                return is_last
            self._learn({*self._expected, optimizer})
        return self._ends_while_learning(optimizer)

    def _learn(self, expected: set[int]) -> None:
        self._expected = set(expected)
        self._missing = set(expected)
        self._history = []
        self._period = []
        self.alone = 0

    def _ends_while_learning(self, optimizer: int) -> bool:
        self._expected.add(optimizer)
        self._history.append(optimizer)
        self._missing.discard(optimizer)
        if len(self._history) >= LEARNED_WITHIN and self._missing == self._expected - {*self._history}:
            self._expected -= self._missing  # they do not take part
            self._missing.clear()
        period = shortest_period(self._history)
        if period and {*self._history[:period]} == self._expected:
            self._period = self._history[:period]
            self.alone = self._period[0] if period == 1 else 0
            self._history = []
            self._missing = set()
            return True
        if len(self._history) >= FORGOTTEN_AFTER:
            self._history.clear()  # no order: each turn of all of them is a step
        if self._missing:
            return False
        self._missing = set(self._expected)
        return True


def shortest_period(history: list[int]) -> int:
    """The length of the shortest pattern that the history fully repeats at least twice; 0 if there is none."""
    for period in range(1, len(history) // 2 + 1):
        if len(history) % period == 0 and history[period:] == history[:-period]:
            return period
    return 0

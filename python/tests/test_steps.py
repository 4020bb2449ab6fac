"""What ends a step, over events: D fetch, F forward, K backward, O optimizer (O1, O2: which)."""

from __future__ import annotations

import pytest

from gnntop.hooks.steps import LONE_BACKWARDS, StepRule, shortest_period


def ends(events: str, expected: set[int] | None = None) -> list[int]:
    """The places of the events, counted from 0, that end a step."""
    rule = StepRule()
    if expected is not None:
        rule.expect(expected)
    found = []
    for place, event in enumerate(events.split()):
        if event == "K":
            is_end = rule.backward()
        elif event[0] == "O":
            is_end = rule.optimizer(int(event[1:] or 1))
        else:
            is_end = False
        if is_end:
            found.append(place)
    return found


@pytest.mark.parametrize(
    ("events", "where"),
    [
        ("D F K O D F K O", [3, 7]),
        ("D F K D F K O", [6]),  # two micro-batches
        ("D D F K O D F K O", [4, 8]),  # a loader that looks ahead
        ("D F K D O F K D O", [4, 8]),
        ("O D F K O O", [4]),  # an optimizer without gradients ends nothing
        ("F K F K F K O", [6]),  # a closure that is called three times
        ("D F K K O", [4]),  # two losses
    ],
)
def test_one_optimizer(events: str, where: list[int]) -> None:
    assert ends(events, {1}) == where
    assert ends(events) == where


def test_two_optimizers_in_turn_are_one_step() -> None:
    assert ends("D F K O1 F K O2 " * 3, {1, 2}) == [6, 13, 20]


def test_two_optimizers_after_one_backward_are_one_step() -> None:
    assert ends("D F K O1 O2 " * 4, {1, 2}) == [4, 9, 14, 19]


def test_a_generator_that_steps_every_fifth_time() -> None:
    assert ends(("D F K O1 " * 5 + "F K O2 ") * 3, {1, 2}) == [22, 45, 68]


def test_the_order_is_learned_where_the_rare_one_comes_first() -> None:
    found = ends(("D F K O1 " + "F K O2 " * 3) * 6, {1, 2})
    assert found[-4:] == [12 + 13 * turn for turn in range(2, 6)]


def test_an_optimizer_that_never_steps_is_not_waited_for_long() -> None:
    found = ends("D F K O1 " * 20, {1, 2})
    assert found[-12:] == [4 * step + 3 for step in range(8, 20)]


def test_a_new_order_is_learned() -> None:
    alternating = ends("D F K O1 " * 10 + "D F K O1 F K O2 " * 8, {1})
    assert alternating[:10] == [4 * step + 3 for step in range(10)]
    assert len(alternating) in (18, 19)


def test_without_optimizers_each_backward_pass_is_a_step_in_the_end() -> None:
    found = ends("D F K " * (LONE_BACKWARDS + 3))
    assert found == [3 * place + 2 for place in range(LONE_BACKWARDS, LONE_BACKWARDS + 3)]


def test_many_micro_batches_are_learned() -> None:
    found = ends("K " * 40 + "O " + "K " * 79 + "O")
    assert found == [40, 120]


@pytest.mark.parametrize(
    ("history", "period"),
    [([], 0), ([1], 0), ([1, 1], 1), ([1, 2], 0), ([1, 2, 1], 0), ([1, 2, 1, 2], 2), ([1, 1, 2, 1, 1, 2], 3)],
)
def test_shortest_period(history: list[int], period: int) -> None:
    assert shortest_period(history) == period

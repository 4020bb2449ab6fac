"""What is recorded of a loop, by the calls that hooks make, without torch and without the native part."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conftest import Recorder

from gnntop.hooks.loop import Loop


class Driven:
    """A loop, and the calls that hooks make while a program does one thing."""

    def __init__(self) -> None:
        self.loop = Loop()

    def fetch(self, batch: object = (), inside: Callable[[], None] = lambda: None) -> None:
        depth = self.loop.fetch_begin()
        assert depth is not None
        inside()
        self.loop.fetch_end(depth, batch)

    def forward(self, has_gradients: bool = True, is_training: bool = True) -> None:
        depth = self.loop.forward_begin(has_gradients, is_training)
        assert depth is not None
        self.loop.forward_end(depth)

    def evaluate(self) -> None:
        self.forward(has_gradients=False, is_training=False)

    def backward(self) -> None:
        depth = self.loop.backward_begin()
        assert depth is not None
        self.loop.backward_end(depth, is_micro_batch=True)

    def optimizer(self, which: int = 1) -> None:
        depth = self.loop.optimizer_begin(has_closure=False)
        assert depth is not None
        self.loop.optimizer_end(depth, which)

    def step(self) -> None:
        self.fetch()
        self.forward()
        self.backward()
        self.optimizer()


@pytest.fixture
def driven(recorder: Recorder) -> Driven:
    return Driven()


def test_a_plain_step(driven: Driven, recorder: Recorder) -> None:
    driven.step()
    driven.step()
    assert recorder.phases_of_steps() == [["data wait", "forward", "loss", "backward", "optimizer"]] * 2
    assert len(recorder.sessions) == 1
    assert recorder.inferred_names == []


def test_gradients_set_to_zero_are_the_optimizers(driven: Driven, recorder: Recorder) -> None:
    def zero_grad() -> None:
        depth = driven.loop.zero_begin()
        assert depth is not None
        driven.loop.part_end(depth)

    driven.fetch(inside=lambda: None if driven.loop.zero_begin() is None else pytest.fail("inside of a fetch"))
    zero_grad()
    driven.forward()
    driven.backward()
    driven.optimizer()
    zero_grad()
    driven.step()
    first, second = recorder.phases_of_steps()
    assert first == ["data wait", "optimizer", "forward", "loss", "backward", "optimizer"]
    assert second == ["optimizer", "data wait", "forward", "loss", "backward", "optimizer"]


def test_no_session_without_a_backward_pass(driven: Driven, recorder: Recorder) -> None:
    driven.fetch()
    driven.evaluate()
    driven.optimizer()
    assert recorder.sessions == []


def test_a_forward_that_no_root_tells_is_inferred_and_says_so(driven: Driven, recorder: Recorder) -> None:
    for _ in range(3):
        driven.fetch()
        driven.backward()
        driven.optimizer()
    assert recorder.phases_of_steps() == [["data wait", "forward", "backward", "optimizer"]] * 3
    assert recorder.inferred_names == ["forward"]


def test_roots_that_are_no_longer_called_give_way_to_inference(driven: Driven, recorder: Recorder) -> None:
    driven.step()
    for _ in range(3):
        driven.fetch()
        driven.backward()
        driven.optimizer()
    assert recorder.phases_of_steps()[-2:] == [["data wait", "forward", "backward", "optimizer"]] * 2


def test_micro_batches_are_spans_and_their_sizes_add_up(driven: Driven, recorder: Recorder) -> None:
    class Batch:
        shape = (16, 4)

        def dim(self) -> int:
            return 2

    for _ in range(2):
        for _ in range(3):
            driven.fetch(Batch())
            driven.forward()
            driven.backward()
        driven.optimizer()
    assert recorder.batches == [(-1, -1, -1, -1, 48)]
    begin, end = recorder.steps
    assert sum(name == "micro-batch" and begin <= b <= e <= end for name, b, e in recorder.spans) == 3


def test_evaluation_between_steps_is_one_phase_with_its_fetches_inside(driven: Driven, recorder: Recorder) -> None:
    driven.step()
    for _ in range(3):
        driven.fetch()
        driven.evaluate()
    driven.fetch(None)
    driven.step()
    assert recorder.phases_of_steps()[1] == ["validation", "data wait", "forward", "loss", "backward", "optimizer"]
    (timed,) = recorder.timed
    assert timed[0] == "validation"
    assert timed in recorder.spans


def test_a_forward_without_gradients_in_a_training_step_is_forward(driven: Driven, recorder: Recorder) -> None:
    driven.fetch()
    driven.forward(has_gradients=False)
    driven.forward()
    driven.backward()
    driven.optimizer()
    assert recorder.phases_of_steps() == [["data wait", "forward", "forward", "loss", "backward", "optimizer"]]


def test_an_epoch_begins_with_the_first_batch_after_the_end_of_the_data(driven: Driven, recorder: Recorder) -> None:
    driven.step()
    driven.fetch(None)
    assert recorder.epochs == []
    driven.step()
    driven.fetch(None)  # a loader that looks ahead: the last batch is still to come
    driven.step()
    assert recorder.epochs == [1, 2]


def test_sampling_takes_the_place_of_the_wait_that_it_lies_in(driven: Driven, recorder: Recorder) -> None:
    def sample() -> None:
        outer = driven.loop.loading_begin("sample")
        inner = driven.loop.loading_begin("gather")
        assert outer is not None
        assert inner is not None
        driven.loop.loading_end(inner)
        driven.loop.loading_end(outer)

    driven.fetch(inside=sample)
    driven.forward()
    driven.backward()
    driven.optimizer()
    (phases,) = recorder.phases_of_steps()
    assert phases[:5] == ["data wait", "sample", "gather", "sample", "data wait"]
    assert recorder.open == []


def test_what_raises_leaves_nothing_open(driven: Driven, recorder: Recorder) -> None:
    driven.step()
    assert driven.loop.optimizer_begin(has_closure=False) is not None  # raises: its end is never told
    driven.step()
    assert recorder.open == []
    assert len(recorder.steps) == 2


def test_steps_of_the_program_switch_the_rule_off(driven: Driven, recorder: Recorder) -> None:
    driven.step()
    driven.loop.is_automatic = False
    driven.step()
    assert len(recorder.steps) == 1


def test_a_forked_child_of_a_training_records_nothing(driven: Driven, recorder: Recorder) -> None:
    driven.step()
    driven.loop.forked()
    assert driven.loop.fetch_begin() is None
    assert driven.loop.forward_begin(True, True) is None
    assert driven.loop.backward_begin() is None
    assert driven.loop.optimizer_begin(False) is None


def test_a_collection_that_takes_long_is_a_mark_with_its_duration(
    driven: Driven, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gnntop.hooks import collector

    monkeypatch.setattr(collector, "loop", driven.loop)
    driven.step()
    for ticks in (10, 500):
        collector._collecting("start", {})
        recorder.ticks += ticks
        collector._collecting("stop", {})
    ((name, begin, end),) = recorder.timed
    assert name == "garbage collection"
    assert end - begin == 501

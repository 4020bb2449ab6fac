"""Turns what the hooks report about the training thread into phases, steps and batches.

Each pair of methods is one kind of work of a loop. A method ``..._begin`` returns None if nothing is to be recorded, as
inside another phase or on another thread; its ``..._end`` is then not called.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident, main_thread

from .. import _native
from . import deep_trace
from .batches import Shape, shape_of
from .steps import StepRule

# Stamps of the training thread.
_RESTED, _COMPUTED, _DIFFERENTIATED, _STEPPED, _SAVING, _BACKWARD_BEGAN, _REDUCING = range(7)
# What the training thread is inside.
_NOTHING, _FETCH, _FORWARD, _EVALUATION, _BACKWARD, _OPTIMIZER, _TRANSFER = range(7)
_UNKNOWN = (-1, -1, -1, -1, -1)
# Where an inferred forward begins.
_FROM_ARRIVAL = "from the batch's arrival to backward: no module was called that holds the optimizer's parameters"


class Names:
    """The numbers of the recorded names. Made with the first record, not at import: see `gnntop_name`."""

    def __init__(self) -> None:
        phase, span = _native.phase, _native.span_name
        self.data_wait = phase("data wait")
        self.sample = phase("sample")
        self.gather = phase("gather")
        self.transfer = phase("transfer")
        self.forward = phase("forward")
        self.loss = phase("loss")
        self.backward = phase("backward")
        self.all_reduce = phase("all-reduce")
        self.optimizer = phase("optimizer")
        self.validation = phase("validation")
        self.gc = phase("gc")
        self.checkpoint = phase("checkpoint")
        self.compile = phase("compile")
        self.backward_of_ranks = span("backward and all-reduce")
        self.micro_batch = span("micro-batch")
        self.clip = span("clip gradients")
        self.unscale = span("unscale gradients")
        self.skipped = _native.mark_name("optimizer step skipped: gradients were not finite")
        self.validated = _native.reported_name("validation")
        self.collected = _native.mark_name("garbage collection")
        self.saved = _native.mark_name("checkpoint")


class Loop:
    """The training loop of this process; the only instance is `loop`."""

    def __init__(self) -> None:
        self.rule = StepRule()
        self.names: Names
        self.thread = 0
        """The training thread; 0 before anything has happened, -1 in a process that does not train."""
        self.is_open = False
        """Whether a session has been requested."""
        self.steps = 0
        self.is_automatic = True
        """Whether the rule ends steps; not once the program has called `gnntop.step`."""
        self.on_open: list[Callable[[], None]] = []
        """Called when the session opens, on the training thread."""
        self.describe: Callable[[], tuple[str, dict[str, str]]] = lambda: ("python", {})
        """Name and facts of the session, asked for when it opens."""
        self.look_for_roots: Callable[[], None] | None = None
        """Called before the next fetch, or before gradients are set to zero, once."""
        self.on_edge: Callable[[str], None] | None = None
        """Called when a phase has ended, with its name; with "begin" before forward, with "step" at a step's end."""
        self.has_peers = False
        """Whether backward passes send gradients to other ranks, and `reducing` is called then."""
        self._is_reducing = False
        self._state = _NOTHING
        # How deep in optimizers' closures the thread is.
        self._closures = 0
        # Whether a root module was called since the last backward pass, and whether a batch came.
        self._has_forward = False
        self._has_batch = False
        # Whether the time since the stamp `_RESTED` is forward, if a backward pass comes before a root's call.
        self._may_infer = False
        self._inferred = 0
        # What this loop has done so far: what it does not do is not stamped.
        self._sees_forward = False
        self._accumulates = False
        # Backward passes since an optimizer stepped, and in the running closure.
        self._micro_batches = 0
        self._in_closure = 0
        # Ticks; 0 for none.
        self._fetch_began = 0
        self._validation_began = 0
        self._evaluated = 0
        # The phases of loading that the thread is in, the innermost last.
        self._loading: list[int] = []
        # Finished epochs, by the ends of a loader's data; whether one ended and no batch came since.
        self._epoch = 0
        self._is_over = False
        self._shape: Shape = ()
        self._sum: Shape = ()
        self._told: Shape = ()

    # ---- threads and processes ------------------------------------------------------------------------------------

    def _is_elsewhere(self) -> bool:
        """Whether this thread is not the training thread; the first event decides for the main thread."""
        if self.thread == 0 and get_ident() == main_thread().ident:
            self._start_on_this_thread()
        return self.thread != get_ident()

    def _start_on_this_thread(self) -> None:
        if not hasattr(self, "names"):
            self.names = Names()
        self.thread = get_ident()
        self._state = _NOTHING

    def is_here(self) -> bool:
        """Whether the calling thread is the training thread."""
        return get_ident() == self.thread

    def forked(self) -> None:
        """This process is a child of one that trains, or may train: only what has not begun may begin here."""
        self._state = _NOTHING
        if self.thread:
            self.thread = -1

    def _open(self) -> None:
        self.is_open = True
        name, facts = self.describe()
        _native.open_session(name, facts)
        _native.track("train", _native.TRAINING)
        for call in self.on_open:
            call()

    # ---- data -----------------------------------------------------------------------------------------------------

    def fetch_begin(self, _args: object = ()) -> int | None:
        """The loop asks for a batch."""
        if get_ident() != self.thread and self._is_elsewhere():
            return None
        if self._state:
            if self._state != _OPTIMIZER:
                return None
            _native.end_to(0)  # an optimizer raised, and the program continued
        if self.look_for_roots is not None:
            self.look_for_roots()
        self._state = _FETCH
        self._fetch_began = _native.now()
        return _native.begin(self.names.data_wait)

    def fetch_end(self, depth: int, batch: object) -> None:
        """The loop has its batch, or None at the end of the data."""
        _native.end_to(depth)
        self._has_forward = False
        self._state = _NOTHING
        if not self._sees_forward:
            self._rest()
        if batch is not None:
            self._has_batch = True
            self._shape = shape_of(batch)
            if self._is_over and not self._validation_began:
                self._begin_epoch()
        elif not self._validation_began:
            self._is_over = self.steps > 0

    def _begin_epoch(self) -> None:
        """The data had ended and a batch came again. One of an evaluation counts as the new epoch, too."""
        self._is_over = False
        self._epoch += 1
        _native.epoch(self._epoch)

    def loading_begin(self, phase: str) -> int | None:
        """A loader samples or gathers. On the training thread this replaces the wait that contains it."""
        if self.thread < 0:  # a worker
            return _native.begin(_native.phase(phase))
        if self._state not in (_NOTHING, _FETCH) or get_ident() != self.thread:
            return None
        name = self.names.sample if phase == "sample" else self.names.gather
        if self._state == _FETCH or self._loading:
            _native.end()
        self._loading.append(name)
        return _native.begin(name)

    def loading_end(self, depth: int) -> None:
        """It has sampled or gathered."""
        _native.end_to(depth)
        if self.thread < 0:
            return
        self._loading.pop()
        if self._loading:
            _native.begin(self._loading[-1])
        elif self._state == _FETCH:
            _native.begin(self.names.data_wait)

    def transfer_begin(self) -> int | None:
        """The batch is moved to a device."""
        if self._state or get_ident() != self.thread:
            return None
        self._state = _TRANSFER
        return _native.begin(self.names.transfer)

    def transfer_end(self, depth: int) -> None:
        """The batch has arrived, or is on its way."""
        _native.end_to(depth)
        self._rest()

    def _rest(self) -> None:
        """No recorded work is running: what follows may be an unrecorded forward pass."""
        self._state = _NOTHING
        if not self._sees_forward:
            self._may_infer = True
            _native.stamp(_RESTED)

    # ---- forward, loss, validation --------------------------------------------------------------------------------

    def forward_begin(self, has_gradients: bool, is_training: bool) -> int | None:
        """A root module is called."""
        if get_ident() != self.thread and self._is_elsewhere():
            return None
        if self._state:
            return None
        if not has_gradients and not is_training:
            return self._evaluation_begin()
        if self._validation_began and has_gradients:
            self._end_validation()
        if self._closures:
            self._begin_in_closure()
        if self._has_forward:  # the loss of an earlier forward pass, or the work between one network and the next
            _native.span_between(self.names.loss, _COMPUTED, _native.NOW)
        self._state = _FORWARD
        self._has_forward = has_gradients or self._has_forward
        self._may_infer = False
        if self.on_edge is not None:
            self.on_edge("begin")
        return _native.begin(self.names.forward)

    def _evaluation_begin(self) -> int:
        self._state = _EVALUATION
        if not self._validation_began:
            # The fetch before belongs to it, unless a backward pass followed that.
            self._validation_began = self._fetch_began if self._has_batch else _native.now()
        return _native.begin(self.names.validation)

    def forward_end(self, depth: int) -> None:
        """The root module has returned, or raised."""
        _native.end_to(depth)
        if self._state == _EVALUATION:
            self._evaluated = _native.now()
            self._fetch_began = 0
            self._rest()
        else:
            _native.stamp(_COMPUTED)
            self._state = _NOTHING
            if self.on_edge is not None:
                self.on_edge("forward")

    def _end_validation(self) -> None:
        """The loop trains again: validation lasted until the fetch of this batch, or until its last forward pass."""
        end = self._fetch_began or self._evaluated
        _native.span_at(self.names.validation, self._validation_began, end)
        _native.mark_at(self.names.validated, self._validation_began, end)
        self._validation_began = 0

    # ---- backward -------------------------------------------------------------------------------------------------

    def backward_begin(self, _args: object = ()) -> int | None:
        """Gradients are about to be computed."""
        if get_ident() != self.thread and self._is_elsewhere():
            if self.is_open or self.thread < 0:
                return None
            self._start_on_this_thread()  # the first thread that differentiates is the training thread
        if self._state:
            return None
        if not self.is_open:
            self._open()
        if self._validation_began:
            self._end_validation()
        if self._has_forward:
            _native.span_between(self.names.loss, _COMPUTED, _native.NOW)
            self._has_forward = False
            self._sees_forward = True
        else:
            self._infer_forward()
        self._may_infer = False
        if self._micro_batches == 1 and self._accumulates and not self._closures:
            _native.span_between(self.names.micro_batch, _STEPPED, _DIFFERENTIATED)
        self._state = _BACKWARD
        if not self.has_peers:
            return _native.begin(self.names.backward)
        # Its end and the begin of the wait for others are known only at the end.
        self._is_reducing = False
        _native.stamp(_BACKWARD_BEGAN)
        return _native.begin(self.names.backward_of_ranks)

    def reducing(self) -> None:
        """The training thread sends gradients to other ranks, in its backward pass."""
        if self._state == _BACKWARD and get_ident() == self.thread:
            self._is_reducing = True
            _native.stamp(_REDUCING)

    def _split_backward(self) -> None:
        end = _REDUCING if self._is_reducing else _native.NOW
        _native.span_between(self.names.backward, _BACKWARD_BEGAN, end)
        if self._is_reducing:
            _native.span_between(self.names.all_reduce, _REDUCING, _native.NOW)

    def _infer_forward(self) -> None:
        if self._may_infer:
            self._begin_in_closure()
            _native.span_between(self.names.forward, _RESTED, _native.NOW)
            self._inferred += 1
            if self._inferred == 2:  # the first step is seen before its modules are known
                _native.inferred(self.names.forward, _FROM_ARRIVAL)
        elif self._has_batch:
            self._sees_forward = False  # no root was called for this batch: from the next one on, forward is inferred

    def backward_end(self, depth: int, _result: object = None, is_micro_batch: bool = True) -> None:
        """Gradients are ready, or the backward pass raised."""
        _native.end_to(depth)
        if self.has_peers:
            self._split_backward()
        self._state = _NOTHING
        if self.on_edge is not None:
            self.on_edge("backward")
        if is_micro_batch:
            self._add_micro_batch()
        self._has_batch = False
        if self._accumulates or self._closures:
            _native.stamp(_DIFFERENTIATED)
        if self.rule.backward() and not self._closures:
            self._rest()
            self._end_step()

    def _add_micro_batch(self) -> None:
        self._in_closure += 1
        if self._closures and self._in_closure > 1:
            return  # the same batch again
        self._micro_batches += 1
        if self._micro_batches > 1:
            _native.span_between(self.names.micro_batch, _DIFFERENTIATED, _native.NOW)
            self._accumulates = True
        if self._has_batch:
            self._sum = tuple(map(_add, self._sum, self._shape)) if self._sum else self._shape

    # ---- optimizer ------------------------------------------------------------------------------------------------

    def optimizer_begin(self, has_closure: bool) -> int | None:
        """An optimizer begins its step; with a closure, forward and backward are inside."""
        if get_ident() != self.thread and self._is_elsewhere():
            return None
        if self._state:
            return None
        if self._validation_began:
            self._end_validation()
        if has_closure:
            self._closures += 1
            self._in_closure = 0
            return -1
        self._state = _OPTIMIZER
        return _native.begin(self.names.optimizer)

    def optimizer_end(self, depth: int, optimizer: int) -> None:
        """An optimizer has stepped, or a scaler has skipped its step."""
        if depth < 0:
            self._closures -= 1
            _native.span_between(self.names.optimizer, _DIFFERENTIATED, _native.NOW)
        else:
            _native.end_to(depth)
        self._state = _NOTHING
        if not self._sees_forward:
            self._rest()
        self._micro_batches = 0
        if self.on_edge is not None:
            self.on_edge("optimizer")
        if self.rule.optimizer(optimizer):
            self._end_step()
        if self._accumulates:
            _native.stamp(_STEPPED)

    def _begin_in_closure(self) -> None:
        """In a closure that is called again, what the optimizer did since the previous backward pass."""
        if self._closures and self._in_closure:
            _native.span_between(self.names.optimizer, _DIFFERENTIATED, _native.NOW)

    def zero_begin(self, _args: object = ()) -> int | None:
        """Gradients are set to zero, which frees memory: also the optimizer's phase."""
        if self.look_for_roots is not None:
            self.look_for_roots()
        if get_ident() != self.thread and self._is_elsewhere():
            return None
        return None if self._state else _native.begin(self.names.optimizer)

    def part_begin(self, name: int) -> int | None:
        """Gradients are unscaled or clipped: part of the optimizer's phase, even outside its step."""
        if get_ident() != self.thread or self._state not in (_NOTHING, _OPTIMIZER):
            return None
        depth = _native.begin(self.names.optimizer)
        _native.begin(name)
        return depth

    def part_end(self, depth: int, _result: object = None) -> None:
        """The unscaling or clipping is done."""
        _native.end_to(depth)

    def _end_step(self) -> None:
        if not self.is_automatic:
            return
        if self._sum != self._told:
            self._told = self._sum
            _native.batch(*(self._sum or _UNKNOWN))
        self._sum = ()
        number = _native.step()
        self.steps += 1
        if _native.asked():
            deep_trace.step_ended(number)
        if self.on_edge is not None:
            self.on_edge("step")

    # ---- anything else that takes the training thread's time --------------------------------------------------------

    def collective_begin(self) -> int | None:
        """The program itself communicates with other ranks."""
        if self._state or get_ident() != self.thread:
            return None
        return _native.begin(self.names.all_reduce)

    def pause_begin(self, name: int) -> int | None:
        """The training thread starts work with its own phase, such as saving a checkpoint."""
        if get_ident() != self.thread:
            return None
        return _native.begin(name)

    def pause_end(self, depth: int) -> None:
        """That work is done."""
        _native.end_to(depth)
        if self._state == _NOTHING:
            self._rest()

    def save_begin(self) -> int | None:
        """A checkpoint is written."""
        if get_ident() != self.thread:
            return None
        if self._validation_began and not self._state:
            self._end_validation()
        _native.stamp(_SAVING)
        return _native.begin(self.names.checkpoint)

    def save_end(self, depth: int) -> None:
        """The checkpoint is written: a phase, and a mark with its time."""
        self.pause_end(depth)
        if depth == 0:
            _native.mark_since(self.names.saved, _SAVING)


def _add(a: int, b: int) -> int:
    return a + b if a >= 0 and b >= 0 else -1


loop = Loop()

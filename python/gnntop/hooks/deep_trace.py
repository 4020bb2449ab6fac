"""A deep trace of a few steps, when ``gnntop trace`` asks for one.

torch.profiler runs from the end of one step to the end of the last one asked for. Its trace goes into the session's
directory, where ``gnntop trace`` fetches it. Its operators become spans of the session, on a track for each thread and
each stream of a GPU. Each step that this slows down says so, and percentiles leave it out. A request is bounded here,
in steps, and in the memory that torch needs for its operators.

The training thread waits until the trace is written, because a person asked for it. Whatever fails is answered, and the
program continues. A trace is of one thread, the main one if that trains, and ends early when the program does what
torch.profiler does not survive (``trace_guards``). ``sessions/src/request.rs`` describes the request and its answers.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .. import _native
from .._answers import within
from .._signals import is_the_programs
from . import trace_guards
from .patching import described
from .trace_memory import Memory

MOST_STEPS = 100
MOST_SPANS = 100_000
"""Spans of a trace that the session gets: the first ones to begin. The trace itself has all."""
_MOST_NAMES = 500
"""Different names among them; further ones are called ``other``."""
_AT_ONCE = 4000
"""Spans to record before the session's thread is given time to write them: a quarter of what a ring holds."""
_PAUSE_S = 0.03
_LOG_LEVEL = "KINETO_LOG_LEVEL"
"""What torch's library for traces writes to the program's stderr; nothing from this level on."""
_NO_LOG = "99"
_PATIENCE_S = 1.0
_PUBLISHING_S = 30.0
"""How long spans are waited for: `MOST_SPANS` take two, and a thread may not come to run where memory is scarce."""
_of_thread = threading.local()
_ANSWER = "answer"
_TRACE = "trace.json"
_TRACE_FILES = (_TRACE, f"{_TRACE}.tmp")
"""The trace, and its name until torch has completed it."""

_Span = tuple[int, int, str]
"""End and begin in nanoseconds since 1970, and the name."""
_Track = tuple[str, int]
"""What people read, and its role."""

on_work: Callable[..., None] | None = None
"""Calls `work_began`; in force while a trace runs."""
_trace: DeepTrace | None = None
_asked = "", 0.0
"""The request that a thread has seen that is not to begin, and when."""
_stepping = threading.Lock()
"""Held by the thread whose step has ended: several may train."""


def step_ended(step: int) -> None:
    """A step of the training has ended, and there is a request. Raises nothing of its own."""
    status = _native.status()
    if status == _native.FORKED:  # the profiler of a child's parent is not the child's
        return
    if (_trace is None or _trace.is_of_this_thread()) and _stepping.acquire(blocking=False):
        try:
            if status == _native.PUBLISHING:
                _proceed(step)
            else:
                _interrupt(is_over=status != _native.FAILED)
        finally:
            _stepping.release()


def _proceed(step: int) -> None:
    """Begins a trace, traces the next step too, or ends the trace."""
    global _trace
    trace, request = _trace, _native.request()
    if trace is None and not request:
        _remove(_ANSWER, *_TRACE_FILES)  # withdrawn: by an asker that has fetched the trace, or is gone
        _native.answered(request)
        return
    if trace is None and not _is_turn_of_this_thread(request):
        return
    try:
        if trace is None:
            _trace = DeepTrace(request, step + 1)
        elif trace.reason:
            raise RuntimeError(trace.reason)
        elif trace.goes_on():
            trace.next_step(step)
        else:
            _trace = None
            trace.finish(step)
    except BaseException as error:
        _trace = None
        _give_up(trace.request if trace is not None else request, error)
        if trace is not None:
            trace.abandon()
        if is_the_programs(error):
            raise
    _native.mark(_native.mark_name("deep trace"))
    _native.traced()


def _is_turn_of_this_thread(request: str) -> bool:
    """Whether it is to begin: the main one is, if a step of it ends. Torch writes to stderr if another thread does."""
    global _asked
    if threading.get_ident() == threading.main_thread().ident:
        return True
    if _asked[0] != request:
        _asked = request, time.monotonic()
    return time.monotonic() > _asked[1] + _PATIENCE_S


def work_began() -> None:
    """Work has begun while a trace runs: a validation is much of it, and no step ends. Raises nothing of its own."""
    trace = _trace
    if trace is not None and trace.is_of_this_thread() and trace.has_grown():
        _end_early("the step takes too much memory to trace it, as a long validation does")


def _end_early(reason: str) -> None:
    """Ends the trace that runs, if one does. Only its own thread can: others wait for its next step, but not long."""
    global _trace
    trace = _trace
    if trace is None or _native.status() == _native.FORKED:
        return
    trace.reason = reason
    if trace.is_of_this_thread():
        _trace = None
        trace.abandon()
        _give_up(trace.request, RuntimeError(reason))
    else:
        trace.has_stopped.wait(_PATIENCE_S)


def _interrupt(is_over: bool) -> None:
    """Stops a trace while nothing can be written; it begins again afterwards, or never if the session is over."""
    global _trace
    trace, _trace = _trace, None
    if trace is not None:
        trace.abandon()
    if is_over:
        _native.answered(_native.request())


def _give_up(request: str, error: BaseException) -> None:
    _remove(*_TRACE_FILES)
    _answer(request, f"failed {described(error)}")
    _native.answered(request)


def _answer(request: str, text: str) -> None:
    """Replaces the answer, at once and whole."""
    words = request.split()
    if len(words) < 2:
        return
    new = f"{_ANSWER}.new"
    _remove(new)
    with contextlib.suppress(OSError):  # the session has been removed; nobody waits any more
        with open(_path(new), "x", encoding="utf-8", errors="replace", opener=_private) as file:
            file.write(f"{words[1]} {' '.join(text.split())}\n")
        os.replace(_path(new), _path(_ANSWER))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _path(name: str) -> str:
    """A file in the session's directory."""
    directory = _native.directory()
    if not directory:
        raise FileNotFoundError("the session has been closed")
    return os.path.join(directory, name)


def _remove(*names: str) -> None:
    """Removes files in the session's directory: what is written there next follows no link and waits for no pipe."""
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(_path(name))


def _steps(request: str) -> int:
    """The steps asked for; raises if the request is none of ours."""
    kind, _, steps = [*request.split(), "", "", ""][:3]
    if kind != "trace":
        raise ValueError(f"this version of gnntop does not know the request {kind}")
    is_number = steps.isascii() and steps.isdigit() and len(steps) <= len(str(MOST_STEPS))
    if not is_number or not 1 <= int(steps) <= MOST_STEPS:
        raise ValueError(f"a trace is of 1 to {MOST_STEPS} steps")
    return int(steps)


class DeepTrace:
    """torch.profiler, running."""

    def __init__(self, request: str, first: int) -> None:
        """Starts with the step ``first``. Raises where torch cannot, such as under another profiler."""
        self.request = request
        self._first = first
        self._left = _steps(request)
        self.reason = ""
        """Why it is to end before its time."""
        self.has_stopped = threading.Event()
        self._thread = threading.get_ident()
        self._profiler = _profiler(first)
        try:
            with _quiet(), _unheard():
                self._profiler.start()
        except Exception:
            self.abandon()
            raise
        self._memory = Memory()  # with what torch loads for its profiler
        self._guards = trace_guards.Guards(_end_early)
        _native.listen(_native.ON_WORK, on_work)
        _of_thread.end = trace_guards.ThreadEnd(_end_early)
        _answer(request, f"began {first}")

    def is_of_this_thread(self) -> bool:
        """Whether this thread began it."""
        return self._thread == threading.get_ident()

    def _stop(self) -> None:
        guards = getattr(self, "_guards", None)  # none where it could not begin
        if guards is not None:
            guards.remove()
            _native.listen(_native.ON_WORK, None)
            _of_thread.end = None
        try:
            with _quiet(), _unheard():
                self._profiler.stop()
        finally:
            self.has_stopped.set()

    def goes_on(self) -> bool:
        """Whether the next step is traced, too: if there is memory, and somebody waits for the trace."""
        return self._left > 1 and self._memory.lasts() and _native.request() == self.request

    def has_grown(self) -> bool:
        """Whether the step takes more memory than it may; from time to time, at any hook."""
        return self._memory.is_passed()

    def next_step(self, step: int) -> None:
        """Begins the step after this one."""
        self._left -= 1
        self._profiler.step_num = step  # ours may be counted in another way than torch's calls of `step`
        with _unheard():
            self._profiler.step()

    def finish(self, last: int) -> None:
        """Stops after the step ``last``, and writes the trace if somebody still waits for it."""
        self._stop()
        _remove(*_TRACE_FILES)
        if _native.request() == self.request:
            self._profiler.export_chrome_trace(_path(_TRACE))
            spans = publish(_events(self._profiler))
            _native.fact("deep trace", f"steps {self._first} to {last}, which percentiles leave out")
            _answer(self.request, f"done {self._first} {last} {spans}")
        else:
            _remove(_ANSWER)
        _native.answered(self.request)

    def abandon(self) -> None:
        """Stops, as far as that is possible."""
        try:
            self._stop()
        except Exception as error:  # it had not begun, or has stopped
            if is_the_programs(error):
                raise


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Torch's library for traces writes nothing, and children that the program starts later get no variable of ours."""
    is_ours = os.environ.setdefault(_LOG_LEVEL, _NO_LOG) == _NO_LOG
    try:
        yield
    finally:
        if is_ours:
            os.environ.pop(_LOG_LEVEL, None)


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    """The program's modes, by which it may count operators or replace them, do not get those that annotate steps."""
    core = getattr(sys.modules.get("torch"), "_C", None)
    dispatch = getattr(core, "_DisableTorchDispatch", object)()  # in force while it lives
    try:
        with getattr(core, "DisableTorchFunction", contextlib.nullcontext)():
            yield
    finally:
        del dispatch


def _profiler(first: int) -> Any:
    torch = sys.modules.get("torch")
    if torch is None:
        raise RuntimeError("it has not imported torch: try `gnntop run --stacks 20`, gnntop.span or py-spy")
    if torch.autograd._profiler_enabled() or trace_guards.is_prepared(torch.profiler):
        raise RuntimeError("the program already runs torch.profiler, and torch allows only one")
    from torch.profiler import ProfilerAction, profile, supported_activities

    # With a schedule, torch annotates steps.
    profiler = profile(activities=supported_activities(), schedule=lambda _: ProfilerAction.RECORD)
    profiler.step_num = first
    return profiler


# ---- operators as spans of the session -----------------------------------------------------------------------------


def _events(profiler: Any) -> Iterable[Any]:
    """What torch has recorded; nothing if this torch has no times in nanoseconds."""
    results = profiler.profiler.kineto_results
    events = results.events() if results is not None else []
    return events if events and hasattr(events[0], "start_ns") else []


def publish(events: Iterable[Any]) -> int:
    """Records torch's events as spans of the session, and returns how many."""
    tracks, ticks = by_track(events), _ticks()
    # A track is a thread's.
    return max(0, within(_PUBLISHING_S, lambda: _record(tracks, ticks)) or 0)


def by_track(events: Iterable[Any]) -> dict[_Track, list[_Span]]:
    """The spans of each thread and of each stream of a GPU, in the order of their ends, inner ones first."""
    ordered = sorted(events, key=lambda event: event.start_ns())
    # Our steps are in the session already.
    steps = [event for event in ordered if event.name().startswith("ProfilerStep#")]
    training = steps[0].start_thread_id() if steps else 0
    tracks: dict[_Track, list[_Span]] = {}
    for event in [event for event in ordered if not _is_left_out(event)][:MOST_SPANS]:
        begin, name = event.start_ns(), event.name()
        tracks.setdefault(_track(event, training), []).append((begin + event.duration_ns(), begin, name))
    for spans in tracks.values():
        spans.sort(key=lambda span: (span[0], -span[1]))
    return tracks


def _is_left_out(event: Any) -> bool:
    return event.name().startswith("ProfilerStep#") or (hasattr(event, "is_async") and event.is_async())


def _track(event: Any, training: int) -> _Track:
    if event.device_type().name != "CPU":
        return f"GPU {event.device_index()} stream {event.device_resource_id()}", _native.STREAM
    thread = event.start_thread_id()
    return "operators" if thread == training else f"operators of thread {thread}", _native.OPERATORS


def _ticks() -> Callable[[int], int]:
    """A function from nanoseconds since 1970 to the session's clock."""
    now, wall_ns = _native.now(), time.time_ns()
    ticks_per_ns = (1 << 40) / _native.ns(1 << 40)
    return lambda ns: now - int((wall_ns - ns) * ticks_per_ns)


def _record(tracks: dict[_Track, list[_Span]], ticks: Callable[[int], int]) -> int:
    names: dict[str, int] = {}
    for (track, role), spans in tracks.items():
        _native.track(track, role)
        for number, (end, begin, name) in enumerate(spans, 1):
            _native.span_at(_number(names, name), ticks(begin), ticks(end))
            if number % _AT_ONCE == 0:
                time.sleep(_PAUSE_S)
        _native.track_end()
    return sum(map(len, tracks.values()))


def _number(names: dict[str, int], name: str) -> int:
    if name not in names:
        names[name] = _native.span_name(name if len(names) < _MOST_NAMES else "other")
    return names[name]

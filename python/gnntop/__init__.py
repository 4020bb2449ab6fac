"""gnntop from inside a Python program: your own spans, phases, steps, counters and marks, and a report.

A training run under ``gnntop run -- python train.py`` needs none of this. Import gnntop to add what only the program
knows, or to publish from a notebook::

    import gnntop

    gnntop.start()                      # in a notebook, or without ``gnntop run``

    with gnntop.span("collate"):
        ...
    with gnntop.phase("forward"):       # for a loop without torch: phases and the gap are the whole step
        ...
    gnntop.step()                       # ends a step here; the loop is no longer split automatically
    gnntop.counter("reward", reward)
    gnntop.mark("warm restart")
    wandb.log(gnntop.report()["phases"])

Importing does nothing but define these functions. The session opens at the first backward pass if gnntop's hooks are
installed, at the first ``step()``, or with ``start()``; both install the hooks. It includes the newest 512 spans,
counters and marks that each thread recorded before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

__all__ = ["counter", "mark", "phase", "report", "resumed", "span", "start", "step"]
__version__ = "0.1.0"


class Span:
    """A named interval of the calling thread, for the length of a ``with`` block. Made by `span` and `phase`."""

    __slots__ = ("_begin", "_end", "_name")

    def __init__(self, name: int) -> None:
        from gnntop import _native

        self._name = name
        self._begin = _native.begin
        self._end = _native.end

    def __enter__(self) -> None:
        """Begins the interval."""
        self._begin(self._name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the interval; an exception propagates."""
        self._end()


_spans: dict[str, Span] = {}
_phases: dict[str, Span] = {}
_counters: dict[str, tuple[Callable[[int, float], None], int]] = {}


def span(name: str) -> Span:
    """Records the block: ``with gnntop.span("collate"):``. Takes about 0.3 us."""
    try:
        return _spans[name]
    except KeyError:
        from gnntop import _native

        made = _spans[name] = _new_span(_native.span_name(name))
        return made


def phase(name: str) -> Span:
    """Records the block as a phase of the step: ``with gnntop.phase("forward"):``.

    Phases and the gap between them add up to the time of a step. Use gnntop's names where they fit: "data wait",
    "sample", "gather", "transfer", "forward", "loss", "backward", "all-reduce", "optimizer", "validation" or
    "checkpoint".
    """
    try:
        return _phases[name]
    except KeyError:
        from gnntop import _native

        made = _phases[name] = _new_span(_native.phase(name))
        return made


def _new_span(number: int) -> Span:
    """A span whose ``with`` only calls the native part: built-in functions, bound to the name, in its own class."""
    from gnntop import _native

    enter = _native.enter(number)
    if enter is None:
        return Span(number)
    methods = {"__slots__": (), "__enter__": enter, "__exit__": _native.leave}
    return type("Span", (Span,), methods)(number)  # type: ignore[no-any-return]


def counter(name: str, value: float) -> None:
    """Records a current value, such as a reward or the length of a queue."""
    found = _counters.get(name)
    if found is None:
        from gnntop import _native

        found = _counters[name] = (_native.counter, _native.counter_name(name))
    found[0](found[1], value)


def mark(name: str, value: float | None = None) -> None:
    """Records that something has happened now, with an optional number."""
    from gnntop import _native

    if value is None:
        _native.mark(_native.mark_name(name))
    else:
        _native.mark_value(_native.mark_name(name), value)


def step(epoch: int | None = None) -> int:
    """Ends a step here and begins the next. Returns the number of steps so far.

    From the first call on, the program says where steps end, and gnntop no longer detects it. The first call opens the
    session and makes the calling thread the training thread.
    """
    from gnntop import _native

    if epoch is not None:
        _native.epoch(epoch)
    number = _native.step()
    if number and _is_split_by_hand:
        if _native.asked():
            from gnntop.hooks import deep_trace

            deep_trace.step_ended(number)
        return number
    _split_by_hand()
    start()
    return number or _native.step()


def resumed(steps: int) -> None:
    """Reports that the program resumes from a checkpoint taken after ``steps`` steps of the run.

    Call it before the first step. A restarted run then shows how many steps were repeated.
    """
    from gnntop import _native

    _native.fact(_native.RESUMED, str(int(steps)))


def start(name: str | None = None) -> bool:
    """Opens the session now and makes the calling thread the training thread. ``name`` defaults to the program's.

    PyTorch is hooked from here on, as under ``gnntop run``: a notebook needs only this line. Returns whether anything
    is published: not with ``GNNTOP=0``, and not in a child of a published program.
    """
    from gnntop import _joining, _native, _program

    _joining.join()
    if _native.status() != _native.PUBLISHING:
        loop = sys.modules.get("gnntop.hooks.loop")
        _, facts = loop.loop.describe() if loop is not None else ("", {})
        facts = {"framework": f"Python {_program.python()}", **_program.place(), **facts}
        if _native.open_session(name or _program.name(), facts):
            _program.close_at_exit()
    return _native.track("train", _native.TRAINING)


def report() -> dict[str, Any]:
    """The session so far, as ``gnntop report --json`` shows it: phases, percentiles, findings.

    Takes a moment, since a separate program reads the session. Raises ``RuntimeError`` if there is no session, or if
    the program ``gnntop`` cannot be found.
    """
    from gnntop import _program

    return _program.report()


_is_split_by_hand = False


def _split_by_hand() -> None:
    """Makes the hooks leave steps to the program."""
    global _is_split_by_hand
    _is_split_by_hand = True
    loop = sys.modules.get("gnntop.hooks.loop")
    if loop is not None:
        loop.loop.is_automatic = False

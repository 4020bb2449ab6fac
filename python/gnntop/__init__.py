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
installed, at the first ``step()``, or with ``start()``; both install the hooks. It includes the newest 2,048 spans,
counters and marks that each thread recorded before.
"""

import sys

# Under `gnntop run` every Python runs this file at its start, which therefore imports nothing else.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

__all__ = ["counter", "denormals", "mark", "one_rank", "phase", "report", "resumed", "span", "start", "step"]
__version__ = "0.1.0"

if __name__ == "gnntop" and "_gnntop" in sys.modules:
    # `gnntop run` watches this program with a package of its own: an installed one is another copy.
    sys.modules[__name__] = sys.modules["_gnntop"]


def _part() -> "Any":
    """The native part, imported with the first call that needs it."""
    return globals().get("_native") or _load()


def _load() -> "Any":
    try:
        from . import _native
    except Exception:  # the program has emptied ``sys.modules``
        return _Nothing()
    return _native


class _Nothing:
    """Stands for the native part where there is none."""

    def enter(self, _: int) -> None:
        """There is no built-in function."""

    def __getattr__(self, _: str) -> "Any":
        return lambda *_: 0


class Span:
    """A named interval of the calling thread, for the length of a ``with`` block. Made by `span` and `phase`."""

    __slots__ = ("_begin", "_end", "_name")

    def __init__(self, name: int) -> None:
        self._name = name
        self._begin = _part().begin
        self._end = _part().end

    def __enter__(self) -> None:
        """Begins the interval."""
        self._begin(self._name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        """Ends the interval; an exception propagates."""
        self._end()


_spans: dict[str, Span] = {}
_phases: dict[str, Span] = {}
_counters: "dict[str, tuple[Callable[[int, float], None], int]]" = {}
_marks: dict[str, int] = {}
_numbered: dict[int, Span] = {}
_MAX_KNOWN = 4096
"""Most names that are looked up without asking the native part."""


def span(name: str) -> Span:
    """Records the block: ``with gnntop.span("collate"):``. Takes about 0.3 us."""
    try:
        return _spans[name]
    except BaseException as error:
        text = _text(name, error)
        return _known(_spans, text, _part().span_name(text))


def phase(name: str) -> Span:
    """Records the block as a phase of the step: ``with gnntop.phase("forward"):``.

    Phases and the gap between them add up to the time of a step. Use gnntop's names where they fit: "data wait",
    "sample", "gather", "transfer", "forward", "loss", "backward", "all-reduce", "optimizer", "validation" or
    "checkpoint".
    """
    try:
        return _phases[name]
    except BaseException as error:
        text = _text(name, error)
        return _known(_phases, text, _part().phase(text))


def _text(name: object, error: BaseException) -> "Any":
    """A name that was not found, as a plain text. What the search raised is raised again if it is the program's."""
    _raise_the_programs(error)
    return name if type(name) is str else _part().plain(name)


def _raise_the_programs(error: BaseException) -> None:
    """Raises an exception again that is not ours, such as a signal's handler's."""
    if _part().is_the_programs(error):
        raise error


def _known(names: dict[str, Span], name: str, number: int) -> Span:
    """The span of a number, found by its name from now on; names beyond the native part's table share one."""
    made = _numbered.get(number)
    if made is None:
        made = _numbered[number] = _new_span(number)
    if len(names) < _MAX_KNOWN:
        names[name] = made
    return made


def _new_span(number: int) -> Span:
    """A span whose ``with`` only calls the native part: built-in functions, bound to the name, in its own class."""
    enter = _part().enter(number)
    if enter is None:
        return Span(number)
    methods = {"__slots__": (), "__enter__": enter, "__exit__": _part().leave}
    return type("Span", (Span,), methods)(number)  # type: ignore[no-any-return]


def _float(value: "Any") -> float:
    """A number as native code takes it. ctypes would lose what a handler of a signal raises in a class's own code."""
    return value if type(value) is float else type(value).__float__(value)


def counter(name: str, value: float) -> None:
    """Records a current value, such as a reward or the length of a queue."""
    try:
        record, number = _counters[name]
    except BaseException as error:
        text = _text(name, error)
        record, number = _part().counter, _part().counter_name(text)
        if len(_counters) < _MAX_KNOWN:
            _counters[text] = record, number
    try:
        record(number, _float(value))
    except BaseException as error:
        _leave_out("counters whose value is no number", error)


def mark(name: str, value: float | None = None) -> None:
    """Records that something has happened now, with an optional number."""
    try:
        number = _marks[name]
    except BaseException as error:
        text = _text(name, error)
        number = _part().mark_name(text)
        if len(_marks) < _MAX_KNOWN:
            _marks[text] = number
    if value is not None:
        try:
            _part().mark_value(number, _float(value))
            return
        except BaseException as error:
            _leave_out("values of marks that are no number", error)
    _part().mark(number)


def step(epoch: int | None = None) -> int:
    """Ends a step here and begins the next. Returns the number of steps so far.

    From the first call on, the program says where steps end, and gnntop no longer detects it. The first call opens the
    session and makes the calling thread the training thread.
    """
    native = _part()
    if epoch is not None:
        try:
            native.epoch(epoch)
        except BaseException as error:
            _leave_out("epochs that are no number", error)
    number: int = native.step()
    # While nothing can be written, steps are counted, but have no number.
    is_counted = number != 0 or native.status() == native.FAILED
    if not (_is_split_by_hand and is_counted):
        _split_by_hand()
        start()
        return number if is_counted else int(native.step())
    if native.asked():
        from .hooks import deep_trace

        deep_trace.step_ended(number)
    return number


def resumed(steps: int) -> None:
    """Reports that the program resumes from a checkpoint taken after ``steps`` steps of the run.

    Call it before the first step. A restarted run then shows how many steps were repeated.
    """
    try:
        if (steps := int(steps)) not in range(1 << 64):
            raise ValueError(steps)
        _part().resumed(steps)
    except BaseException as error:
        _leave_out("resumed steps that are no number", error)


def denormals(count: float) -> None:
    """Reports how many denormal numbers the arithmetic of this step had, for the finding `denormals`."""
    _report("denormals", count)


def one_rank(items_per_s: float) -> None:
    """Reports how many graphs or seeds a second one rank alone gets through: the base of efficiency."""
    _report("one rank items/s", items_per_s)


def _report(what: str, value: float) -> None:
    try:
        _part().counter(_part().reported_name(what), _float(value))
    except BaseException as error:
        _leave_out("reported values that are no number", error)


def start(name: str | None = None) -> bool:
    """Opens the session now and makes the calling thread the training thread. ``name`` defaults to the program's.

    PyTorch is hooked from here on, as under ``gnntop run``: a notebook needs only this line. Returns whether anything
    is published: not with ``GNNTOP=0``, and not in a child of a published program.
    """
    try:
        from . import _joining, _native, _program
    except Exception:  # the program has emptied ``sys.modules``
        return False
    _joining.join()
    if _native.status() not in (_native.PUBLISHING, _native.FAILED):
        loop = sys.modules.get(f"{__package__}.hooks.loop")
        _, facts = loop.describe() if loop is not None else ("", {})
        facts = {"framework": f"Python {_program.python()}", **_program.place(), **facts}
        if _native.open_session(name or _program.name(), facts):
            _program.close_at_exit()
    return _native.track("train", _native.TRAINING)


def report() -> "dict[str, Any]":
    """The session so far, as ``gnntop report --json`` shows it: phases, percentiles, findings.

    Takes a moment, since a separate program reads the session. Raises ``RuntimeError`` if there is no session, or if
    the program ``gnntop`` cannot be found.
    """
    from . import _program

    return _program.report()


_left_out: dict[str, int] = {}
_left_out_of = ""
"""The directory of the session that lacks them; empty before there is one."""


def _leave_out(what: str, error: BaseException) -> None:
    """Counts a value that is not recorded, in a fact of the session at each power of two."""
    global _left_out_of
    _raise_the_programs(error)
    directory = _part().directory()
    if _left_out_of not in ("", directory):
        _left_out.clear()
    _left_out_of = directory
    count = _left_out[what] = _left_out.get(what, 0) + 1
    if count & (count - 1) == 0:
        _part().not_recorded(what, f"{count} or more")


_is_split_by_hand = False


def _split_by_hand() -> None:
    """Makes the hooks leave steps to the program."""
    global _is_split_by_hand
    _is_split_by_hand = True
    _part().switch(_part().IS_AUTOMATIC, 0)

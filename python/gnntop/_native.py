"""The native part of gnntop, called through ctypes.

How hooks call it
=================
Importing this module loads the library (about a millisecond after ``ctypes`` itself); it opens no session and starts
no thread. Where the library cannot be loaded, or ``GNNTOP=0`` is set, every function is there and does nothing:
``available`` is False and ``problem`` says why. No function raises, but for arguments of a wrong type.

Take a function into a local or global of your own once, and call that::

    from . import _native
    begin, end, end_to = _native.begin, _native.end, _native.end_to
    FORWARD = _native.phase("forward")          # a small int; ask once

    def hook(...):
        depth = begin(FORWARD)                  # about 70 ns
        try:
            return original(...)
        finally:
            end_to(depth)                       # ends what an exception left open inside, too

Without exceptions to fear ``end()`` does. Spans that are known only later are noted with ``stamp(slot)``
(16 slots a thread) and recorded with ``span_between(name, begin_slot, end_slot)``, where ``NOW`` stands for
this instant; with times from elsewhere, ``now()`` and ``span_at``.

- **Before the session is open everything works**: the last 2,048 events of a thread are kept, and written once that
  thread has a track. So hooks just call; at the outermost backward they call ``open_session(name, facts)`` and
  ``track("train", TRAINING)`` when ``status() == NOT_OPEN``.
- **A step ends by ``step()``**, or by ``step_between(begin_slot, end_slot)`` at a time that was stamped earlier. What
  is recorded on the thread before belongs to it. ``batch(...)`` and ``epoch(n)`` say what is known, in advance.
- **Micro-batches** are spans (``span_name("micro-batch")``) after the fact. **Marks with a duration**: ``stamp`` at the
  begin, ``mark_since(name, slot)`` at the end; ``mark_at`` with times from elsewhere.
- **Inferred phases**: ``inferred(FORWARD, "from the batch's arrival to backward")``, once.
- **A loop whose steps are found**: ``token = work_begin(BACKWARD)`` and, unless it is None,
  ``work_end(BACKWARD, token)``. `Hooked` does so around a function, without a frame of Python.
- **Workers**: the parent calls ``worker_ring("loader 0")`` before the worker starts, which gives ``(handle,
  address)``; the worker calls ``worker_attach(address)`` first, whichever way it was started, and then ``begin`` and so
  on; the parent calls ``worker_close(handle)`` when the iterator is done (a death is noticed without).
- **After a fork** the child is inert until it attaches as a worker: no need to check. ``status()`` tells.
- **Requests**: ``asked()`` after each step says whether a person asks for something: see ``hooks/deep_trace.py``.
- **GPU**: ``cuda(device, stream)`` on the training thread after ``track``.

Arguments marked "int" must fit 31 bits: they are passed without ``argtypes``, which would cost 80 ns a call. What is
called at every step does not go through ctypes at all where this Python allows: see ``_library.py``.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any

from . import _answers, _endings, _library, _thread_end
from ._environment import variable
from ._signals import is_the_programs

ABI = 1
MARK, SPAN, PHASE, COUNTER, REPORTED = 0, 1, 2, 3, 4
OTHER, TRAINING, LOADER, OPERATORS, STREAM = range(5)
NOT_OPEN, PUBLISHING, OFF, FORKED, FAILED, WORKER = 0, 1, 2, 3, 4, 5
NOW = -1
FETCH, SAMPLE, GATHER, TRANSFER, FORWARD, FORWARD_WITHOUT_GRADIENTS, EVALUATION, BACKWARD, GRADIENTS = range(9)
OPTIMIZER, CLOSURE, ZERO_GRAD, UNSCALE, CLIP, COLLECTIVE, CHECKPOINT, COMPILE, ENVIRONMENT, FROZEN = range(9, 19)
"""Work of a training loop, for `work_begin`, as ``gnntop.h`` numbers it."""
OF_ROOTS, OF_FETCHER = -1, 1 << 16
"""Instead of work, for `Hooked`: calls of root modules. ``OF_ROOTS - name``: calls are spans of this name. Calls of a
fetcher, whose ``collate_fn`` is a span of the name that is given for a module."""
(
    ON_OPEN,
    ON_ROOTS,
    IS_HEARD,
    ON_EDGE,
    ON_REQUEST,
    IS_GRAD_ENABLED,
    TENSOR,
    PARAMETER,
    UNHEARD,
    ON_FORWARD,
    ON_CALL,
    ON_WORK,
    IS_NESTED,
    ON_GRADIENTS,
) = range(14)
"""What `listen` sets: see ``python/src/events.rs``."""
NEEDS_TRACK, NEEDS_SESSION, NEEDS_NOTICE = range(3)
"""What is called for ``ON_OPEN``."""
IS_AUTOMATIC, HAS_PEERS, IS_ELSEWHERE, ARE_REMOVED = range(4)
"""What `switch` sets: the rule ends steps, there are other ranks, this process does not train, hooks are removed."""
FOR_VALUE, FOR_TENSOR, ALWAYS = range(3)
"""How a function waits for a device: where the tensor is on one, also counted on the CPU; not counted there; always."""
_DIRECTORY, _WARNING, _REQUEST = 0, 1, 2

available: bool = False
"""Whether calls reach the native part."""
problem: str = ""
"""Why they do not."""


def _nothing(*_: Any) -> Any:
    return 0


# What hooks call; each is a function of the library once it is loaded. See include/gnntop.h for what they do.
begin: Callable[[int], int] = _nothing
end: Callable[[], None] = _nothing
end_to: Callable[[int], None] = _nothing
stamp: Callable[[int], None] = _nothing
span_between: Callable[[int, int, int], None] = _nothing
now: Callable[[], int] = _nothing
span_at: Callable[[int, int, int], None] = _nothing
ns: Callable[[int], float] = _nothing
step: Callable[[], int] = _nothing
step_between: Callable[[int, int], int] = _nothing
traced: Callable[[], None] = _nothing
asked: Callable[[], int] = _nothing
epoch: Callable[[int], None] = _nothing
counter: Callable[[int, float], None] = _nothing
counter_int: Callable[[int, int], None] = _nothing
mark: Callable[[int], None] = _nothing
mark_value: Callable[[int, float], None] = _nothing
mark_since: Callable[[int, int], None] = _nothing
mark_at: Callable[[int, int, int], None] = _nothing
allocation: Callable[[int, int], None] = _nothing
status: Callable[[], int] = _nothing
track_end: Callable[[], None] = _nothing
close: Callable[[], None] = _nothing
flush: Callable[[], int] = _nothing
worker_close: Callable[[int], None] = _nothing
cuda: Callable[[int, int], int] = _nothing
resumed: Callable[[int], None] = _nothing
loader_workers: Callable[[int], None] = _nothing

# The rule for steps: only as built-in functions.
listen: Callable[[int, Any], None] = _nothing
work_begin: Callable[[int], int | None] = _nothing
work_end: Callable[..., None] = _nothing
fetch_end: Callable[[int, object], None] = _nothing
optimizer_before: Callable[[Any, Any, Any], None] = _nothing
optimizer_after: Callable[[Any, Any, Any], None] = _nothing
optimizer_steps: Callable[[], int] = _nothing
expect: Callable[..., None] = _nothing
made: Callable[[Any], None] = _nothing
is_here: Callable[[], int] = _nothing
is_elsewhere: Callable[[], int] = _nothing
sending: Callable[[Any], None] = _nothing
switch: Callable[[int, int], None] = _nothing
add_root: Callable[[Any, bool], int] = _nothing
remove_root: Callable[[Any], None] = _nothing
fields: Callable[[Any], Any] = _nothing
shape: Callable[[Any], Any] = _nothing
read_with: Callable[[type, Any], None] = _nothing
close_ring_with: Callable[[Any, int], None] = _nothing
watch_waits: Callable[[Any, int], int] = _nothing
collecting: Callable[..., None] = _nothing
denormal_share: Callable[..., int | None] = _nothing
denormal_cost: Callable[[], int] = _nothing
Hooked: Any = object
"""Stands for a function of a library: ``Hooked(function, work, None)``. See ``python/src/hooked.rs``."""

leave: Callable[..., None] = _nothing
"""Ends the innermost span, whatever it is given: for ``__exit__``."""

# Longest text in characters; names are cut to 200 bytes.
_MAX_LINE = 4096
_builtin: Callable[[bytes, int], Any] | None = None
_ending: _endings.Maker | None = None

_name: Callable[[int, bytes], int] = _nothing
_open: Callable[[bytes, bytes], int] = _nothing
_fact: Callable[[bytes, bytes], None] = _nothing
_goal: Callable[[int, int, bytes], None] = _nothing
_parameters: Callable[[bytes, int], None] = _nothing
_not_recorded: Callable[[bytes, bytes], None] = _nothing
_inferred: Callable[[int, bytes], None] = _nothing
_track: Callable[[bytes, int], int] = _nothing
_stacks: Callable[[bytes, int, int], int] = _nothing
_batch: Callable[[int, int, int, int, int], None] = _nothing
_worker_ring: Callable[[bytes, Any, int], int] = _nothing
_worker_attach: Callable[[bytes], int] = _nothing
_append: Callable[[bytes, bytes], int] = _nothing
_open_high: Callable[[bytes], int] = _nothing
_text: Callable[[int, Any, int], int] = _nothing
_answered: Callable[[bytes], None] = _nothing


def phase(text: str) -> int:
    """The number of a phase: a span that, with the other phases, tiles a step."""
    return _name(PHASE, _bytes(text))


def span_name(text: str) -> int:
    """The number of a span's name."""
    return _name(SPAN, _bytes(text))


def counter_name(text: str) -> int:
    """The number of a counter's name."""
    return _name(COUNTER, _bytes(text))


def reported_name(text: str) -> int:
    """The number of a name that gnntop knows the meaning of, such as "denormals"."""
    return _name(REPORTED, _bytes(text))


def mark_name(text: str) -> int:
    """The number of a mark's text."""
    return _name(MARK, _bytes(text))


def enter(name: int) -> Callable[..., None] | None:
    """A function that begins this span, whatever it is given: for ``__enter__``. None where there is none."""
    return None if _builtin is None or name <= 0 else _builtin(b"enter", name)


def open_session(name: str, facts: dict[str, str] | None = None) -> bool:
    """Opens this process's session; whether one is open now.

    ``run``, ``rank``, ``ranks``, ``engine``, ``device``, ``threads``, ``host_ranks``, ``host_cores``, ``stage``,
    ``stages``, ``copy`` and ``copies`` place it among the sessions of a run; ``ranks`` below 2 is a run by itself.
    ``run`` is what the launcher calls it where it is not given. ``framework`` is what the program is built on, such as
    ``PyTorch 2.9.1``. Everything else is a fact that is shown.
    """
    facts = facts or {}
    directory = variable("GNNTOP_DIR")
    if directory and not os.environ.get("GNNTOP_DIR"):  # the program has cleared its environment
        facts = {**facts, "directory": directory}
    lines = (f"{key}={plain(value)}" for key, value in facts.items())
    is_open = bool(_open(_bytes(name), "\n".join(lines).encode()))
    tell_problem()
    if is_open:
        _answers.tell("session")  # which may be removed before it ends
        _endings.watch(_open_high, flush, _ending)
        _endings.close_in_child(close)
    return is_open


def track(name: str, role: int = OTHER) -> bool:
    """Opens a track for the calling thread; whether it records."""
    place = _track(_bytes(name), role)
    if place == 1 and role == TRAINING:  # not a further thread that trains
        _watch_stacks()
    if place and role == TRAINING:
        _thread_end.call(track_end)
    return bool(place)


def _watch_stacks() -> None:
    """Has the calling thread's stack taken when a phase takes much longer than usual and, if asked, all the time.

    The library reads this frame and compares what it finds with what is said here.
    """
    least_ms, a_second = _number("GNNTOP_STALL_MS", 50), _number("GNNTOP_STACKS", 0)
    if least_ms > 0 or a_second > 0:
        code = sys._getframe().f_code
        name, file = getattr(code, "co_qualname", code.co_name), code.co_filename
        for folder in ("site-packages/", "dist-packages/"):
            if folder in file:
                file = file.split(folder, 1)[1]
                break
        else:
            file = file.rsplit("/", 1)[-1]
        line = sys._getframe().f_lineno + 1
        _stacks(_bytes(f"{name} ({file}:{line})"), min(max(least_ms, 0), 86_400_000), min(max(a_second, 0), 200))


def _number(name: str, otherwise: int) -> int:
    """What an environment variable says."""
    try:
        return int(variable(name) or otherwise)
    except ValueError:
        return otherwise


def fact(key: str, value: str) -> None:
    """Adds a fact of the session that is shown and means nothing, or changes it."""
    _fact(_bytes(key), _bytes(value))


def goal(more_steps: int, epochs: int, by: str) -> None:
    """Says how far the run is meant to go: this many more steps or, with 0, epochs in all; and who knows that."""
    _goal(more_steps, epochs, _bytes(by))


def parameters(number_type: str, dense_embeddings: int) -> None:
    """Says of what type most parameters are, and what share of them, in percent, is in dense embeddings."""
    _parameters(_bytes(number_type), dense_embeddings)


def not_recorded(what: str, amount: str) -> None:
    """Says what is not in the session, and how much of it."""
    _not_recorded(_bytes(what), _bytes(amount))


def inferred(name: int, how: str) -> None:
    """Says that this phase is inferred, and how."""
    _inferred(name, _bytes(how))


def batch(nodes: int = -1, edges: int = -1, graphs: int = -1, seeds: int = -1, samples: int = -1) -> None:
    """Says how large batches are from the step on that ends next; what is left out is not known."""
    _batch(nodes, edges, graphs, seeds, samples)


def worker_ring(name: str) -> tuple[int, str] | None:
    """Makes a ring for a worker to be started: its handle, and the address that the worker attaches by."""
    address = ctypes.create_string_buffer(64)
    handle = _worker_ring(_bytes(name), address, 64)
    return (handle, address.value.decode()) if available and handle >= 0 else None


def worker_attach(address: str) -> bool:
    """In a worker: the calling thread records into its parent's ring from now on."""
    return bool(_worker_attach(_bytes(address)))


def directory() -> str:
    """The session's directory, which ``gnntop attach`` takes; empty without one."""
    return _text_of(_DIRECTORY)


def warning() -> str:
    """Why nothing is published (any more); empty where all is well."""
    return _text_of(_WARNING)


def tell_problem() -> None:
    """Tells ``gnntop run`` why nothing is published, if that is so."""
    why = "" if status() == FORKED else warning()
    if why:
        _answers.tell(f"problem {why}")


def request() -> str:
    """What ``gnntop trace`` asks for, as ``asked()`` has noticed; empty where it was withdrawn."""
    return _text_of(_REQUEST)


def answered(request: str) -> None:
    """Says that this request is dealt with; a newer one stays."""
    _answered(request.encode())  # unchanged, its line's end too: it is compared with the one that is open


def _text_of(which: int) -> str:
    size = 4096
    while True:
        buffer = ctypes.create_string_buffer(size)
        length = _text(which, buffer, size)
        if length < size:
            return buffer.value.decode("utf-8", "replace")
        size = length + 1024


def _bytes(text: object) -> bytes:
    """What goes into one line of C text: no NUL, no line's end, no half of a surrogate pair. Whatever it is given."""
    return plain(text).encode()


def plain(text: object) -> str:
    """Whatever it is given, as a plain text of one line."""
    try:
        cleaned = str(text)[:_MAX_LINE].replace("\0", " ").replace("\n", " ")
        return cleaned.encode("utf-8", "replace").decode("utf-8")
    except BaseException as error:  # an object's own words are the program's code
        if is_the_programs(error):
            raise
        return f"({type(text).__name__})"


def _load() -> str:
    """Takes the library's functions; gives the problem, empty where there is none."""
    if variable("GNNTOP") == "0":
        return "GNNTOP=0 is set"
    try:
        globals().update(_library.functions(ABI))
    except OSError as error:
        return f"{error}"
    _answers.append = _append
    return ""


problem = _load()
available = not problem

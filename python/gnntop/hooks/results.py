"""Figures and the report of a session, written into the runs of trackers that ``GNNTOP_TO`` names.

They are written just before the program ends such a run, or at the program's end into those that are open then.
Nothing here is done unless it is asked for. All of it happens on a thread of our own, for which the program waits a
bounded time; what fails becomes a fact of the session and an answer to ``gnntop run``.
"""

from __future__ import annotations

import _thread
import os
import sys
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .. import _answers, _native, _program
from . import loop
from .patching import guarded, on_uninstall, patch

if TYPE_CHECKING:
    from .figures import Figures

Write = Callable[["Figures"], None]
"""Writes the figures into one run of a tracker."""

TRACKERS = ("wandb", "mlflow", "tensorboard", "trackio")
_WITHIN_S = 30.0
"""The program waits this long for one run's results."""

_left_s = 60.0
"""It waits this long in all."""
_done: set[str] = set()
"""The runs that have their results."""
_outcomes: dict[str, str] = {}
"""What became of the results, by tracker that is asked for."""
_WRITTEN = "written"
_NO_RUN = "it had no open run"
_writers: weakref.WeakSet[Any] = weakref.WeakSet()
"""TensorBoard's writers, which nobody else lists."""
_worker: _Worker | None = None


class _Worker:
    """A thread that makes calls. It is there before the first one: from Python 3.12 on none can start at the end."""

    def __init__(self) -> None:
        from queue import SimpleQueue

        self._pid = os.getpid()
        self._calls: SimpleQueue[tuple[Callable[[], None], _thread.LockType]] = SimpleQueue()
        _thread.start_new_thread(self._work, ())

    def _work(self) -> None:
        while True:
            call, done = self._calls.get()
            call()
            done.release()

    def is_here(self) -> bool:
        """Whether this process has the thread: a child that it forks does not."""
        return self._pid == os.getpid()

    def within(self, seconds: float, call: Callable[[], None]) -> str:
        """What the call raises, or that it takes longer than this; empty if all is well."""
        problems: list[str] = []

        def run() -> None:
            try:
                call()
            except BaseException as error:
                problems.append(f"{type(error).__name__}: {error}")

        done = _thread.allocate_lock()
        done.acquire()
        self._calls.put((run, done))
        if not done.acquire(timeout=seconds):
            return f"not done within {seconds:.0f} s"
        return problems[0] if problems else ""


def install(asked: str) -> None:
    """Prepares to write results into the runs of these trackers, with commas between them."""
    for name in filter(None, (name.strip().lower() for name in asked.split(","))):
        _outcomes[name] = _NO_RUN if name in TRACKERS else f"it is not one of {', '.join(TRACKERS)}"
    if _outcomes:
        _program.before_close.append(_at_end)
        loop.on_open.append(_start_worker)
        on_uninstall.append(_forget)


def _start_worker() -> None:
    global _worker
    if _worker is None:
        _worker = _Worker()


def watch_wandb(run: ModuleType) -> None:
    """Hooks ``wandb.sdk.wandb_run``."""
    if "wandb" in _outcomes:
        _when_made(run.Run, lambda _: None)
        for name in ("finish", "_finish"):  # what a ``with`` block ends with is the second
            _before(run.Run, name, lambda args: _to_wandb(args[0]))


def watch_mlflow(fluent: ModuleType) -> None:
    """Hooks ``mlflow.tracking.fluent``: what ends a run there, and by a client, as Lightning's logger does."""
    if "mlflow" in _outcomes:
        client = getattr(fluent, "MlflowClient", None)
        patch(client, "set_terminated", lambda args: _to_mlflow(*args[:2]), lambda *_: None, names=("run_id",))


def watch_trackio(run: ModuleType) -> None:
    """Hooks ``trackio.run``."""
    if "trackio" in _outcomes:
        _before(run.Run, "finish", lambda args: _to_trackio(args[0]))


def watch_tensorboard(writer: ModuleType) -> None:
    """Hooks ``torch.utils.tensorboard.writer``, or the same of ``tensorboardX``."""
    if "tensorboard" in _outcomes:
        _when_made(writer.SummaryWriter, _writers.add)
        _before(writer.SummaryWriter, "close", lambda args: _to_tensorboard(args[0]))


def _before(owner: Any, attribute: str, write: Callable[[tuple[Any, ...]], None]) -> None:
    patch(owner, attribute, write, lambda *_: None)


def _when_made(owner: Any, call: Callable[[Any], None]) -> None:
    """Calls ``call`` with new objects of a class. W&B and tensorboardX close them at its end: we come before."""
    import atexit

    write = guarded("results", _to_open_runs)

    def made(new: Any, _: object) -> None:
        call(new)
        atexit.unregister(write)
        atexit.register(write)

    patch(owner, "__init__", lambda args: args[0], made)


def _at_end() -> None:
    """Writes into the runs that are open when the program ends, and says what became of all."""
    guarded("results", _to_open_runs)()
    if _native.directory():
        _native.fact("results", "; ".join(f"{name}: {outcome}" for name, outcome in sorted(_outcomes.items())))
        for name, outcome in sorted(_outcomes.items()):
            _answers.tell(f"results {name} {outcome}")


def _to_open_runs() -> None:
    modules = sys.modules
    wandb = getattr(modules.get("wandb"), "run", None)
    if wandb is not None and "wandb" in _outcomes:
        _to_wandb(wandb)
    fluent: Any = modules.get("mlflow.tracking.fluent")
    if fluent is not None and "mlflow" in _outcomes:
        active = fluent.active_run()
        if active is not None:
            _to_mlflow(fluent.MlflowClient(), active.info.run_id)
    current: Any = getattr(modules.get("trackio.context_vars"), "current_run", None)
    trackio = None if current is None else current.get()
    if trackio is not None and "trackio" in _outcomes:
        _to_trackio(trackio)
    for writer in list(_writers):
        _to_tensorboard(writer)


def _to_wandb(run: Any) -> None:
    def write(figures: Figures) -> None:
        run.summary.update({**figures.numbers, **figures.texts})
        page = figures.page(run.dir)
        run.save(page, base_path=run.dir, policy="now")

    _deliver("wandb", f"wandb {run.id}", write)


def _to_mlflow(client: Any, run_id: str) -> None:
    def write(figures: Figures) -> None:
        import time

        from mlflow.entities import Metric, RunTag

        now_ms = int(time.time() * 1000)
        metrics = [Metric(key, float(value), now_ms, figures.steps) for key, value in figures.numbers.items()]
        client.log_batch(run_id, metrics=metrics, tags=[RunTag(key, text) for key, text in figures.texts.items()])
        client.log_artifact(run_id, figures.page(figures.folder))

    _deliver("mlflow", f"mlflow {run_id}", write)


def _to_tensorboard(writer: Any) -> None:
    if writer not in _writers:  # one that did not go through a constructor that we know, or has its results
        return
    _writers.discard(writer)
    if getattr(writer, "all_writers", ()) is None:  # closed, and would open a new file
        return

    def write(figures: Figures) -> None:
        for key, value in figures.numbers.items():
            writer.add_scalar(key, value, figures.steps)
        for key, text in figures.texts.items():
            writer.add_text(key, text, figures.steps)
        folder = writer.get_logdir() if hasattr(writer, "get_logdir") else writer.logdir  # tensorboardX has no former
        if os.path.isdir(folder):
            figures.page(folder)
        writer.flush()

    _deliver("tensorboard", "", write)


def _to_trackio(run: Any) -> None:
    def write(figures: Figures) -> None:
        run.log({**figures.numbers, **figures.texts})
        run.log_artifact(figures.page(figures.folder), name="gnntop-report", type="report")

    _deliver("trackio", f"trackio {run.id}", write)


def _deliver(tracker: str, run: str, write: Write) -> None:
    """Writes into a run, once if it has a name, while the program waits.

    Not before the session is open, nor in a forked child.
    """
    global _left_s
    _start_worker()
    if run in _done or _worker is None or not _worker.is_here() or not _native.directory():
        return
    if run:
        _done.add(run)
    if _left_s <= 0:
        _outcomes[tracker] = "the program has waited long enough for other runs"
        return
    from time import monotonic

    from .figures import Figures

    def make_and_write() -> None:
        with Figures() as figures:
            write(figures)

    began = monotonic()
    problem = _worker.within(min(_WITHIN_S, _left_s), make_and_write)
    _left_s -= monotonic() - began
    _outcomes[tracker] = problem or _WRITTEN


def _forget() -> None:
    global _worker
    _program.before_close.remove(_at_end)
    loop.on_open.remove(_start_worker)
    _worker = None
    _done.clear()
    _outcomes.clear()

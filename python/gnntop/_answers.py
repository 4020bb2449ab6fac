"""Reports to ``gnntop run`` which Python programs it has reached, and their outcome.

``GNNTOP_ANSWERS`` is a directory made by ``gnntop run``. Each process has a file there, named after its id, with a line
per message. The program's own output never shows any of it. Every Python under ``gnntop run`` runs this file at its
start, so it imports nothing else.

A file is opened by the library once that is loaded: audit hooks of the program's hear what Python opens.
"""

import _thread
import os

from ._environment import variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_WITHIN_S = 1.0
"""How long a file is waited for: its file system may hang."""
_hangs = False
"""Whether it does: then nothing more is waited for."""


def tell(line: str) -> None:
    """Adds a line to this process's answer. Never raises, and does not wait long for the file system."""
    directory = variable("GNNTOP_ANSWERS")
    if directory and not _hangs:
        path = os.path.join(directory, str(os.getpid()))
        text = line.replace("\n", " ").encode("utf-8", "replace") + b"\n"
        in_time(lambda: append(os.fsencode(path), text))


def _append(path: bytes, text: bytes) -> int:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        return os.write(file, text)
    finally:
        os.close(file)


append: "Callable[[bytes, bytes], int]" = _append
"""Adds a text to a file, which is made if there is none."""


def in_time(call: "Callable[[], int]") -> int:
    """What the call returns on a thread of its own; -1 if it raises, or does not return in time."""
    global _hangs
    result = within(_WITHIN_S, call)
    _hangs = result is None
    return -1 if result is None else result


def within(seconds: float, call: "Callable[[], int]") -> "int | None":
    """The same with another time; None if it is over. ``threading`` waits forever for a thread that cannot run."""
    results: list[int] = []
    done = _thread.allocate_lock()
    done.acquire()

    def run() -> None:
        try:  # noqa: SIM105
            results.append(call())
        except BaseException:
            pass
        done.release()

    try:
        _thread.start_new_thread(run, ())
    except RuntimeError:  # there may be no further thread
        run()
    if not done.acquire(timeout=seconds):
        return None
    return results[0] if results else -1

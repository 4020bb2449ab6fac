"""A program in a pseudo-terminal: its keys, its size, its end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from pathlib import Path

from under_test import Gnntop


class PtyProgram:
    """gnntop in its own terminal. What it draws is read and thrown away."""

    def __init__(self, gnntop: Gnntop, *words: str | Path, rows: int = 24, columns: int = 80) -> None:
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(gnntop.home)
            os.execve(gnntop.path, [str(gnntop.path), *map(str, words)], gnntop.env)
        self.resize(rows, columns)

    def resize(self, rows: int, columns: int) -> None:
        """Gives the terminal another size."""
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        """Presses keys."""
        with contextlib.suppress(OSError):  # it has ended
            os.write(self.terminal, keys)

    def watch(self, seconds: float) -> None:
        """Lets time pass, and reads what is drawn."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([self.terminal], [], [], left)
            try:
                if ready and not os.read(self.terminal, 1 << 16):
                    return
            except OSError:
                return  # it has ended

    def close(self) -> None:
        """Closes the terminal, like a window that is closed."""
        os.close(self.terminal)
        self.terminal = -1

    def end(self, timeout_s: float) -> int | None:
        """Waits for its end: its exit code, minus the signal that ended it, or None if it keeps running."""
        give_up_at = time.monotonic() + timeout_s
        while time.monotonic() < give_up_at:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            if self.terminal >= 0:
                self.watch(0.02)
            else:
                time.sleep(0.02)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return None

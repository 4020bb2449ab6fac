"""The attacked program: how it is run, under which limits, and what it must never do."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
SCRIPTS = Path(__file__).resolve().parents[1]
NO_TORCH = "there is no Python with torch: scripts/python-env.sh, or --python"
PANICKED = 101
# What turns the direction of a line of text.
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@dataclass
class Limits:
    """Limits of a process. None is no limit."""

    address_space: int | None = None
    file_size: int | None = None
    open_files: int | None = None
    stack: int | None = None

    def apply(self) -> None:
        """Limits the calling process and its children."""
        kinds = ((resource.RLIMIT_AS, self.address_space), (resource.RLIMIT_FSIZE, self.file_size))
        more = ((resource.RLIMIT_NOFILE, self.open_files), (resource.RLIMIT_STACK, self.stack))
        for kind, most in (*kinds, *more):
            if most is not None:
                resource.setrlimit(kind, (most, most))


@dataclass
class Ran:
    """How a run of the program ended. A negative code is a signal."""

    words: list[str]
    code: int | None
    out: bytes
    err: bytes
    seconds: float

    def wrong(self, *, is_text: bool = True) -> str | None:
        """What must never happen, if it did: a signal, a panic, no end, text that drives a terminal."""
        if self.code is None:
            reason = f"did not end in {self.seconds:.0f} s"
        elif self.code < 0:
            reason = f"ended by {signal.Signals(-self.code).name}"
        elif self.code == PANICKED:
            reason = "panicked"
        elif drives_a_terminal(self.err) or (is_text and drives_a_terminal(self.out)):
            reason = "wrote what drives a terminal"
        else:
            return None
        said = self.err.decode(errors="replace").strip()[-300:]
        return f"`gnntop {' '.join(self.words)}` {reason}: {said}"


def drives_a_terminal(text: bytes) -> bool:
    """Whether control characters or marks of direction are in it."""
    decoded = text.decode(errors="replace")
    return any((c < " " and c not in "\n\t\r") or c in BIDI or "\x7f" <= c < "\xa0" for c in decoded)


class Gnntop:
    """The program, with its own directories."""

    def __init__(
        self, path: Path, home: Path, recordings: Path, *, old: Path | None = None, python: Path | None = None
    ) -> None:
        self.path = path
        self.old = old
        self.python = python
        self.home = home
        self.recordings = sorted(recordings.rglob("*.gnntop"))
        self.sessions = home / "sessions"
        self.sessions.mkdir(mode=0o700)
        own = {"GNNTOP_DIR": str(self.sessions), "XDG_CONFIG_HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
        self.env = {**os.environ, **own, "TERM": "xterm-256color", "GNNTOP_TORTURE": str(home)}
        self.env.pop("GNNTOP", None)

    def run(
        self,
        *words: str | Path,
        stdin: bytes | None = None,
        limits: Limits | None = None,
        timeout_s: float = 30,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        program: Path | None = None,
    ) -> Ran:
        """Runs it to its end, or kills it when the time is over."""
        child = self.start(
            *words, limits=limits, cwd=cwd, env=env, program=program, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        began = time.monotonic()
        try:
            out, err = child.communicate(stdin or b"", timeout=timeout_s)
            code: int | None = child.returncode
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            out, err = child.communicate()
            code = None
        return Ran([str(word) for word in words], code, out, err, time.monotonic() - began)

    def start(
        self,
        *words: str | Path,
        limits: Limits | None = None,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.DEVNULL,
        program: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        """Starts it as the leader of its own session, without a terminal."""
        apply = limits.apply if limits else None
        return subprocess.Popen(
            [program or self.path, *words],
            stdin=stdin,
            stdout=stdout,
            stderr=stdout,
            cwd=cwd or self.home,
            env={**self.env, **(env or {})},
            start_new_session=True,
            preexec_fn=apply,
        )

    def library(self) -> Path:
        """What Python loads: beside a program of a development build, in the cache of one that carries it."""
        beside = self.path.parent / "libgnntop_python.so"
        if beside.exists():
            return beside
        self.run("run", "--plain", "--", "python3", "-c", "")
        return next((self.home / "cache").rglob("libgnntop*.so"), beside)

    def torch_python(self) -> Path | None:
        """A Python with torch: the one that was named, or that of scripts/python-env.sh. None without one."""
        if self.python is None:
            found = subprocess.run([SCRIPTS / "python-env.sh", "--path"], capture_output=True, text=True, check=False)
            self.python = Path(found.stdout.strip()) / "bin/python" if found.returncode == 0 else None
        return self.python

    def end_all(self) -> None:
        """Kills everything that was started from here, including keepers and their programs."""
        mark = f"GNNTOP_TORTURE={self.home}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (process / "environ").read_bytes().split(b"\0") and int(process.name) != os.getpid():
                    os.kill(int(process.name), signal.SIGKILL)
            except (OSError, ValueError):
                continue


def wait_until(is_so: Callable[[], bool], timeout_s: float) -> bool:
    """Waits for something; returns whether it came."""
    give_up_at = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.02)
    return True

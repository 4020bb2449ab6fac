"""A file system that answers nothing, under the sessions' directory: a program runs to its end, a command gives up."""

from __future__ import annotations

import ctypes
import os
import random
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tally import Tally
from under_test import Gnntop

TRIES = 6
COMMANDS = (["list"], ["attach", "--plain"], ["clean", "--older", "0s"], ["stop"], [])
PUBLISHES = """
import gnntop, sys
for _ in range(20):
    with gnntop.span("work"):
        print("works")
    gnntop.step()
open("{end}", "w").write("whole")
sys.exit(6)
"""
# Longer than a command or a program waits for it.
HANGS_S = 60


def attack(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """A FUSE file system whose daemon answers no request."""
    program = Tally("file system that hangs under a program", "the program runs to its end with its own code")
    command = Tally("file system that hangs under a command", f"it says so within {HANGS_S} s")
    for number in range(max(2, int(TRIES * share))):
        with _silent_disk() as disk:
            if isinstance(disk, str):
                program.skipped = command.skipped = disk
                break
            env = {"GNNTOP_DIR": str(disk)}
            end, script = gnntop.home / f"hung-{number}", gnntop.home / "publishes.py"
            script.write_text(PUBLISHES.format(end=end))
            prints = ["sh", "-c", f"head -c 200000 /dev/zero; echo whole > {end}; exit 6"]
            words = [prints, ["python3", str(script)]][number % 2]
            ran = gnntop.run("run", "--plain", "--", *words, env=env, timeout_s=HANGS_S)
            ended = None if end.exists() and ran.code == 6 else f"it ended {ran.code}: {ran.err[-300:]!r}"
            program.count(ran.wrong() or ended)
            words = chance.choice(COMMANDS)
            ran = gnntop.run(*words, env=env, timeout_s=HANGS_S)
            said = None if b"does not answer" in ran.err else f"`gnntop {' '.join(words)}` said {ran.err!r}"
            command.count(ran.wrong() or said)
    return [program, command]


@contextmanager
def _silent_disk() -> Iterator[Path | str]:
    """A mounted file system that answers only the kernel's greeting, or why there is none."""
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        yield "only root can mount a file system, and only where there is /dev/fuse"
        return
    libc = ctypes.CDLL(None, use_errno=True)
    with tempfile.TemporaryDirectory() as directory:
        fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0"
        if libc.mount(b"silent", directory.encode(), b"fuse", 0, options.encode()) != 0:
            os.close(fuse)
            yield os.strerror(ctypes.get_errno())
            return
        threading.Thread(target=_greet, args=(fuse,), daemon=True).start()
        try:
            yield Path(directory)
        finally:
            subprocess.run(["umount", "-l", directory], check=False)
            os.close(fuse)  # what still waits gets an error


def _greet(fuse: int) -> None:
    """Answers FUSE_INIT, and reads nothing after it: what waits for it can then be killed."""
    request = os.read(fuse, 1 << 17)
    (unique,) = struct.unpack_from("=Q", request, 8)
    major, minor = struct.unpack_from("=II", request, 40)
    answer = struct.pack("=IIIIHHIIHHIII", major, min(minor, 31), 0, 0, 12, 10, 1 << 16, 1, 0, 0, 0, 0, 0)
    answer = answer.ljust(64, b"\0")
    os.write(fuse, struct.pack("=IiQ", 16 + len(answer), 0, unique) + answer)

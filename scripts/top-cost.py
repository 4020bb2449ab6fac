#!/usr/bin/env python3
"""What `gnntop top` costs with many runs, and how old its figures get: scripts/top-cost.py [GNNTOP [RUNS]]

Makes that many live sessions (500) from recordings in the repository, in a directory of its own, locked as by living programs; they do
not grow. Then `gnntop top` runs in a terminal of 120x40 for a minute, and its CPU time is taken after the first 15 s, so that load
beside it changes little. Last, one table as JSON after a minute shows how many figures were read and how old they are.
"""

import fcntl
import json
import os
import pathlib
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time

WATCHED_S = 60
BEGIN_S = 15
ROOT = pathlib.Path(__file__).resolve().parent.parent


def publish(directory: pathlib.Path, runs: int) -> list:
    """Makes live sessions; they live as long as what is returned."""
    recordings = sorted([*ROOT.glob("recordings/corpus/*.gnntop"), *ROOT.glob("recordings/demo/*.gnntop")])
    locks = []
    for number in range(runs):
        session = directory / f"run-{number + 1}-{number:08x}"
        session.mkdir(0o700)
        segment = session / "00000000.gnntop"
        segment.write_bytes(recordings[number % len(recordings)].read_bytes())
        lock = open(session / "live", "wb")
        fcntl.flock(lock, fcntl.LOCK_EX)
        locks.append(lock)
    return locks


def cpu_s(pid: int) -> float:
    """CPU seconds so far, user and system."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch(gnntop: str) -> tuple[float, float]:
    """Percent of a core, and MiB, of the table on a screen."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(gnntop, [gnntop, "top"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    begin, before = time.monotonic(), None
    while (passed := time.monotonic() - begin) < WATCHED_S:
        if select.select([terminal], [], [], 0.2)[0]:
            os.read(terminal, 1 << 16)
        if before is None and passed >= BEGIN_S:
            before = (time.monotonic(), cpu_s(pid))
    share = (cpu_s(pid) - before[1]) / (time.monotonic() - before[0])
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    os.write(terminal, b"q")
    os.waitpid(pid, 0)
    return 100 * share, pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def ages(gnntop: str) -> None:
    """Prints how many figures were read within a minute, and their ages."""
    command = [gnntop, "top", "--json", "--interval", f"{WATCHED_S}s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        rows = json.loads(process.stdout.readline())["runs"]
        process.kill()
    for figure in ("steps_per_s_age_s", "figures_age_s"):
        known = sorted(row[figure] for row in rows if row[figure] is not None)
        middle, oldest = (known[len(known) // 2], known[-1]) if known else (None, None)
        print(f"{figure}: of {len(known)} of {len(rows)} runs after {WATCHED_S} s, median {middle}, oldest {oldest}")


def main() -> None:
    gnntop = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/gnntop")
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    with tempfile.TemporaryDirectory() as directory:
        os.environ["GNNTOP_DIR"] = directory
        locks = publish(pathlib.Path(directory), runs)
        share, mib = watch(gnntop)
        print(f"gnntop top of {runs} sessions: {share:.1f} % of a core, {mib:.0f} MiB")
        ages(gnntop)
        del locks


if __name__ == "__main__":
    main()

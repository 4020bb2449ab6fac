"""The memory that a deep trace may take: torch.profiler keeps every operator until the trace ends."""

from __future__ import annotations

import contextlib
import os
import time

_MOST_BYTES = 1 << 30
"""By which the program may grow for a trace."""
_GROWTH = 8
"""Times what torch's records of operators take until the end, that is what it takes then to put them together."""
_LOOKS_NS = 100_000_000
"""Between two looks at the memory within a step."""


def _room() -> int:
    """Bytes by which this process may grow: 1 GiB, or an eighth of what the machine or its control group has left."""
    free = [8 * _MOST_BYTES]
    with contextlib.suppress(OSError, ValueError, KeyError):
        free.append(int(_fields("/proc/meminfo")["MemAvailable:"]) * 1024)
    with contextlib.suppress(OSError, ValueError, KeyError, StopIteration):
        with open("/proc/self/cgroup") as file:
            group = "/sys/fs/cgroup" + next(line[3:].strip() for line in file if line.startswith("0::"))
        with open(f"{group}/memory.max") as file:
            most = int(file.read())
        used = _fields(f"{group}/memory.stat")
        free.append(most - int(used["anon"]) - int(used["shmem"]))
    return min(free) // 8


def _fields(path: str) -> dict[str, str]:
    """The first two words of each line of a file of the kernel."""
    with open(path) as file:
        return dict(line.split()[:2] for line in file)


def _resident() -> int:
    """Bytes of memory that this process has; 0 if unknown."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def _most_resident() -> int:
    """Bytes of memory that this process had at most; 0 if unknown."""
    with contextlib.suppress(OSError, ValueError, StopIteration), open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("VmHWM:")).split()[1]) * 1024
    return 0


class Memory:
    """What the program may take while a trace runs, and torch when it ends. Operators cannot be counted."""

    def __init__(self) -> None:
        """From now on."""
        now, room = _resident(), _room()
        self._most_at_end = now + room // _GROWTH
        # Within a step a program has tensors that are gone at its end, but hardly more than ever before.
        self._most_within = min(max(now, _most_resident()) + room // _GROWTH, now + room)
        self._looked_ns = time.monotonic_ns()

    def lasts(self) -> bool:
        """Whether there is enough for another step, at the end of one."""
        return _resident() < self._most_at_end

    def is_passed(self) -> bool:
        """Whether there is too little left for the rest of a step: looked at from time to time."""
        now_ns = time.monotonic_ns()
        if now_ns - self._looked_ns < _LOOKS_NS:
            return False
        self._looked_ns = now_ns
        return _resident() >= self._most_within

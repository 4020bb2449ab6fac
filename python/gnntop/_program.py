"""The watched program: its name, its rank, and what to do at its end."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from typing import Any

from ._environment import variable

# Variables that launchers set: rank, number of ranks, ranks on this machine.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
)


def name() -> str:
    """The script, or the module of ``python -m``; ``python`` for code that is in no file, which no command can name."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name:
        return str(spec.name).removesuffix(".__main__")
    found = os.path.basename(getattr(main, "__file__", None) or next(iter(sys.argv), ""))
    return "python" if found in ("", "-", "-c") else found


def python() -> str:
    """The interpreter's version, such as ``3.11.2``."""
    return sys.version.split()[0]


def place() -> dict[str, str]:
    """This process's place among the ranks of its run, as set by its launcher; empty for a run of one process."""
    for rank, ranks, host_ranks in _LAUNCHERS:
        if os.environ.get(rank, "").isdigit() and os.environ.get(ranks, "").isdigit():
            found = {"rank": os.environ[rank], "ranks": os.environ[ranks]}
            if os.environ.get(host_ranks, "").isdigit():
                found["host_ranks"] = os.environ[host_ranks]
                found["host_cores"] = str(len(os.sched_getaffinity(0)))
            return found
    return {}


before_close: list[Callable[[], None]] = []
"""Called when the interpreter ends, before the session does. They raise nothing of their own."""
_closes_at_exit = False
_REPORT_S = 20.0
"""A report takes this long at most."""


def close_at_exit() -> None:
    """Ends the session normally when the interpreter ends."""
    global _closes_at_exit
    if not _closes_at_exit:
        from . import _native

        def close() -> None:
            for call in list(before_close):
                call()
            _native.tell_problem()
            _native.close()

        _closes_at_exit = True
        atexit.register(close)


def report() -> dict[str, Any]:
    """See `gnntop.report`."""
    import json

    from . import _native

    _native.flush()
    found: dict[str, Any] = json.loads(ask_report("--json", within_s=None))
    return found


def ask_report(*options: str, within_s: float | None = _REPORT_S) -> bytes:
    """What ``gnntop report`` prints of this process's session. Raises ``RuntimeError`` with its words if it fails."""
    import shutil
    import subprocess

    from . import _native

    directory = _native.directory()
    if not directory:
        raise RuntimeError(_native.warning() or _native.problem or "no session is open yet: see gnntop.start()")
    program = variable("GNNTOP_PROGRAM") or _beside_python() or shutil.which("gnntop")
    if not program:
        raise RuntimeError("the program gnntop is not on PATH; set GNNTOP_PROGRAM to its path")
    try:
        command = [program, "report", *options, directory]
        done = subprocess.run(command, capture_output=True, check=False, timeout=within_s, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"gnntop report took more than {within_s} s") from None
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode("utf-8", "replace").strip() or "gnntop report failed")
    return done.stdout


def _beside_python() -> str | None:
    """Where `pip install` puts it."""
    path = os.path.join(sys.prefix, "bin", "gnntop")
    return path if os.access(path, os.X_OK) else None

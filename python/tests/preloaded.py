"""Runs trainings one after the other, each in a process that has torch imported already.

Arguments: a folder, and for each training its name, script and arguments, such as ``plain:clean.py:plain``. It
publishes its session and writes its output in a folder of that name. Each must end with exit code 0.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import torch  # noqa: F401 - for the children


def run_child(script: Path, arguments: list[str], home: Path) -> None:
    """In a child: what the interpreter does with a script, its output in files."""
    home.mkdir(parents=True)
    for stream, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(home / name, os.O_WRONLY | os.O_CREAT), stream)
    os.environ["GNNTOP_DIR"] = str(home / "sessions")
    sys.argv = [str(script), *arguments]
    sys.path[0] = str(script.parent)
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    failed = []
    for what in sys.argv[2:]:
        name, script, *arguments = what.split(":")
        child = os.fork()
        if child == 0:
            run_child(Path(script), arguments, folder / name)
            sys.exit()
        if os.waitpid(child, 0)[1] != 0:
            failed.append(what)
    sys.exit(f"failed: {failed}" if failed else 0)

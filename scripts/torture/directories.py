"""Sessions' directories made by another program, or with bad intent."""

from __future__ import annotations

import os
import random
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

from tally import Tally
from under_test import Gnntop

ROUNDS = 40
DEAD_SESSIONS = 3000
SEGMENT = "00000000.gnntop"
COMMANDS = (
    ["list"],
    ["list", "--live"],
    ["clean", "--older", "0s"],
    ["doctor"],
    ["report"],
    ["attach", "--plain"],
    ["record", "-o", "-"],
    ["serve"],
)


def attack(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Every command that looks for sessions, among directories that are none."""
    tally = Tally(
        "hostile directories of sessions", "no hang on a pipe, no link followed, no panic, clean text, nothing removed"
    )
    recording = gnntop.recordings[0]
    for _ in range(max(2, int(ROUNDS * share))):
        sessions = gnntop.home / f"hostile-{tally.tries}"
        sessions.mkdir(mode=0o700)
        for number in range(chance.randint(1, 12)):
            chance.choice(TRAPS)(sessions / f"pna-{4000 + number}-{number:08x}", recording)
        before = _names(sessions)
        for command in COMMANDS:
            ran = gnntop.run(*command, env={"GNNTOP_DIR": str(sessions)}, timeout_s=20)
            tally.count(ran.wrong(is_text=command[0] != "record"))
        tally.count(None if _names(sessions) == before else f"{sessions} was changed")
        shutil.rmtree(sessions)
    return [tally, _many(gnntop, recording, share)]


def _many(gnntop: Gnntop, recording: Path, share: float) -> Tally:
    tally = Tally("directory of dead sessions", "the living one is listed")
    sessions = gnntop.home / "many"
    sessions.mkdir(mode=0o700)
    many = max(1100, int(DEAD_SESSIONS * share))
    for number in range(many):
        _session(sessions / f"pna-{number}-{number:08x}", recording)
    tally.note = f"{many:,} dead ones"
    env = {"GNNTOP_DIR": str(sessions)}
    child = gnntop.start("train", "gcn", "--epochs", "1000000", env=env)
    ran = gnntop.run("list", "--live", env=env)
    for _ in range(50):
        if b"gcn" in ran.out:
            break
        ran = gnntop.run("list", "--live", env=env)
    tally.count(ran.wrong() or (None if b"gcn" in ran.out else "the living session is not listed"))
    child.kill()
    child.wait()
    shutil.rmtree(sessions)
    return tally


def _names(directory: Path) -> set[str]:
    return {str(path) for path in directory.rglob("*")}


def _session(path: Path, recording: Path) -> None:
    path.mkdir(mode=0o700)
    shutil.copy(recording, path / SEGMENT)


def _pipe_as_lock(path: Path, recording: Path) -> None:
    _session(path, recording)
    os.mkfifo(path / "live")


def _pipe_as_segment(path: Path, _: Path) -> None:
    path.mkdir()
    os.mkfifo(path / SEGMENT)
    (path / "live").touch()


def _link_as_segment(path: Path, _: Path) -> None:
    path.mkdir()
    (path / SEGMENT).symlink_to("/dev/zero")


def _link_as_session(path: Path, _: Path) -> None:
    path.symlink_to("/etc")


def _device(path: Path, _: Path) -> None:
    path.symlink_to("/dev/tty")


def _socket(path: Path, recording: Path) -> None:
    _session(path, recording)
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(path, os.O_DIRECTORY)
        listener.bind(f"/proc/self/fd/{here}/live")
        os.close(here)


def _folder_as_segment(path: Path, _: Path) -> None:
    (path / SEGMENT).mkdir(parents=True)
    (path / "live").mkdir()


def _evil_name(path: Path, recording: Path) -> None:
    _session(path.with_name(f"{path.name}\x1b]0;x\x07\u202e"), recording)


def _not_readable(path: Path, recording: Path) -> None:
    _session(path, recording)
    (path / SEGMENT).chmod(0)


def _nonsense(path: Path, _: Path) -> None:
    path.mkdir()
    (path / SEGMENT).write_bytes(os.urandom(5000))
    (path / "00000001.gnntop").write_bytes(b"")
    (path / "live").write_bytes(b"\xff" * 100_000)


def _of_all_numbers(path: Path, recording: Path) -> None:
    _session(path, recording)
    for name in ("99999999.gnntop", "18446744073709551615.gnntop", "-1.gnntop", "000.gnntop"):
        shutil.copy(recording, path / name)


TRAPS: list[Callable[[Path, Path], None]] = [
    _session,
    _pipe_as_lock,
    _pipe_as_segment,
    _link_as_segment,
    _link_as_session,
    _device,
    _socket,
    _folder_as_segment,
    _evil_name,
    _not_readable,
    _nonsense,
    _of_all_numbers,
]

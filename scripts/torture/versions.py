"""Another version of gnntop on the same sessions (`--old PROGRAM`): each reads and leaves alone what the other made."""

from __future__ import annotations

import random
import signal
import struct
import zlib
from pathlib import Path

from tally import Tally
from under_test import Gnntop, wait_until

ROUNDS = 10
HEADER_LEN = 12
REMOVES = (["clean", "--older", "0s"], ["clean", "--keep-total", "1"])
STEPS = """
import gnntop, time
while True:
    with gnntop.span("work"):
        time.sleep(0.01)
    gnntop.step()
"""
READS = (["list"], ["list", "--all"], ["attach", "--plain"], ["report"])


def attack(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """A live session and damaged ones, under the commands of both versions."""
    both = Tally("two versions at once", "each lists and reads the other's live session, and removes nothing live")
    unknown = Tally("sessions of unknown formats", "each is skipped with words, and never removed")
    for _ in range(max(2, int(ROUNDS * share))):
        _round(gnntop, chance, both, unknown)
    if gnntop.old is None:
        both.note = "the same version twice: --old PROGRAM names another"
    return [both, unknown]


def _round(gnntop: Gnntop, chance: random.Random, both: Tally, unknown: Tally) -> None:
    """One version publishes, the other reads and cleans."""
    programs = [gnntop.path, gnntop.old or gnntop.path]
    chance.shuffle(programs)
    publishing, looking = programs
    script = gnntop.home / "steps.py"
    script.write_text(STEPS)
    before = set(_sessions(gnntop))
    child = gnntop.start("run", "--plain", "--", "python3", script, program=publishing)
    if not wait_until(lambda: bool(_sessions(gnntop) - before), 20):
        both.count(f"{publishing} published nothing")
        return
    (session,) = _sessions(gnntop) - before
    kept = [_unknown(gnntop, chance, number) for number in range(3)]
    words = chance.choice(READS)
    words = [*words, session.name.split("-")[-2]] if words[0] in ("attach", "report") else words
    ran = gnntop.run(*words, program=looking, timeout_s=3 if words[0] == "attach" else 30)
    is_seen = words[0] == "attach" or (ran.code == 0 and b"steps.py" in ran.out)
    both.count(None if is_seen else f"{looking} {words}: {ran.err!r}")
    removed = gnntop.run(*chance.choice(REMOVES), program=looking)
    both.count(removed.wrong() or (None if session in _sessions(gnntop) else f"{looking} removed a live session"))
    gone = [path.name for path in kept if not (path / "00000000.gnntop").exists()]
    unsaid = [path.name for path in kept if path.name.encode() not in removed.err]
    unknown.count(f"{gone} removed" if gone else f"nothing was said of {unsaid}" if unsaid else None)
    child.send_signal(signal.SIGINT)
    child.wait()


def _sessions(gnntop: Gnntop) -> set[Path]:
    return {path.parent for path in gnntop.sessions.glob("*.py-*/00000000.gnntop") if path.stat().st_size > 2048}


def _unknown(gnntop: Gnntop, chance: random.Random, number: int) -> Path:
    """An ended session whose first frame is of a later format, damaged, or no frame at all."""
    path = gnntop.sessions / f"unknown-{number}-{chance.getrandbits(32):08x}"
    path.mkdir(mode=0o700)
    (path / "live").touch()
    data = bytearray(chance.choice(gnntop.recordings).read_bytes())
    if number == 0:  # a later format: the version after the magic word, and the checksum over it
        data[HEADER_LEN + 6] = chance.randint(2, 100)
        end = HEADER_LEN + int.from_bytes(data[9:12], "little")
        data[3:7] = struct.pack("<I", zlib.crc32(data[7:end]))
    elif number == 1:
        data[chance.randrange(HEADER_LEN)] ^= 1 << chance.randrange(8)
    else:
        data[: len(data) // 2] = bytes(len(data) // 2)
    (path / "00000000.gnntop").write_bytes(data)
    return path

"""Mutated recordings on the screen, at any size, with any keys."""

from __future__ import annotations

import random

import stream
from pty_program import PtyProgram
from tally import Tally
from under_test import Gnntop

SCREENS = 400
KEYS = [bytes([code]) for code in range(0x20, 0x7F) if chr(code) not in "qQ"]
KEYS += [
    b"\x1b[A",
    b"\x1b[B",
    b"\x1b[C",
    b"\x1b[D",
    b"\x1b[5~",
    b"\x1b[6~",
    b"\x1b[H",
    b"\x1b[F",
    b"\t",
    b"\r",
    b"\x1b",
]
KEYS += [
    b":9999999\r",
    b":step 3\r",
    b"/x\r",
    b"\x1b[<0;20;10M",
    b"\x1b[<0;20;10m",
    b"\x1b[<64;5;5M",
    b"\x1b]",
    b"\x1b[200~",
]


def attack(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Replays mutants under key presses and resizes, and leaves."""
    tally = Tally(
        "mutated recordings on the screen", "any keys, any size: the screen goes on, and Ctrl-C or q leaves it"
    )
    streams = [path.read_bytes() for path in gnntop.recordings]
    file = gnntop.home / "screen.gnntop"
    for _ in range(max(1, int(SCREENS * share))):
        file.write_bytes(stream.mutant(streams, chance))
        screen = PtyProgram(
            gnntop, "replay", file, "--speed", "50", rows=chance.randint(1, 60), columns=chance.randint(1, 200)
        )
        for _ in range(chance.randint(3, 25)):
            screen.type(b"".join(chance.choices(KEYS, k=chance.randint(1, 8))))
            screen.watch(chance.random() * 0.1)
            if chance.random() < 0.2:
                screen.resize(chance.randint(1, 60), chance.randint(1, 200))
        tally.count(_left(screen), file)
        screen.close()
    return [tally]


def _left(screen: PtyProgram) -> str | None:
    """Leaves the screen as a person would; what went wrong."""
    for keys in (b"\x03", b"d", b"\x1b\x1b", b"q", b"\x03"):
        screen.type(keys)
        screen.watch(0.15)
    code = screen.end(timeout_s=10)
    # Code 1: a file that is no longer a recording was refused. 130: Ctrl-C.
    return None if code in (0, 1, 130) else f"left with code {code}"

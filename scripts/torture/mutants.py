"""Recordings with changes in their events and right checksums, given to every command that reads one."""

from __future__ import annotations

import random

import stream
from tally import Tally
from under_test import MIB, Gnntop, Limits

MUTANTS = 3000
COMMANDS_A_MUTANT = 4
ADDRESS_SPACE = 600 * MIB
BINARY_FORMS = ("perfetto", "parquet")
FORMS = (*BINARY_FORMS, "chrome", "csv", "ndjson", "hlog", "speedscope", "collapsed", "openmetrics", "emissions")
COMMANDS = [
    ["report", "FILE"],
    ["report", "FILE", "--json"],
    ["report", "FILE", "--csv"],
    ["report", "FILE", "--markdown"],
    ["report", "FILE", "--html"],
    ["report", "FILE", "--rank", "1", "--skip-steps", "3"],
    ["report", "FILE", "OTHER", "--percentiles", "0,50,99.9,100"],
    ["report", "-"],
    ["compare", "FILE", "OTHER"],
    ["compare", "OTHER", "FILE", "--json"],
    ["check", "FILE", "--max", "step.p99=12ms", "--min", "steps=3"],
    ["check", "FILE", "--baseline", "OTHER"],
    ["replay", "FILE", "--plain", "--speed", "100000"],
    ["replay", "FILE", "--plain", "--speed", "100000", "--from", "2s"],
    ["record", "-o", "-", "--last", "5s", "FILE"],
    *(["export", "FILE", "--to", form] for form in FORMS),
    ["export", "FILE", "--to", "csv", "--steps", "3..17"],
    ["export", "FILE", "--to", "chrome", "--from", "1s", "--until", "3s"],
]


def attack(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Each mutant is read by some of the commands, within little memory."""
    tally = Tally("mutated recordings", "no panic, no signal, an end in 30 s, 600 MiB of address space, clean text")
    streams = [path.read_bytes() for path in gnntop.recordings]
    file, other = gnntop.home / "mutant.gnntop", gnntop.recordings[-1]
    for _ in range(max(1, int(MUTANTS * share))):
        file.write_bytes(stream.mutant(streams, chance))
        for command in chance.sample(COMMANDS, COMMANDS_A_MUTANT):
            paths = {"FILE": file, "OTHER": other}
            words = [paths.get(word, word) for word in command]
            stdin = file.read_bytes() if "-" in command and "FILE" not in command else None
            ran = gnntop.run(*words, stdin=stdin, limits=Limits(address_space=ADDRESS_SPACE))
            is_text = command[0] != "record" and not any(form in command for form in BINARY_FORMS)
            tally.count(ran.wrong(is_text=is_text), file)
    return [tally]

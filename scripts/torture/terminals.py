"""Terminals that close and signals at any moment: the program lives, and `gnntop run` never panics."""

from __future__ import annotations

import os
import random
import signal
import time

from pty_program import PtyProgram
from tally import Tally
from under_test import Gnntop, wait_until

TERMINALS = 60
SIGNALLED = 60
# Reports every twentieth of a second that it lives, and at the end that it ended.
LIVES = "for i in $(seq {turns}); do echo $i; sleep 0.05; done; echo whole > {end}"
PASSED_ON = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def attack_closing(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Closes the terminal of a view, at any moment."""
    tally = Tally("terminals that close on a view", "the program runs to its end, the view ends without a panic")
    for number in range(max(2, int(TERMINALS * share))):
        end = gnntop.home / f"end-{number}"
        screen = PtyProgram(gnntop, "run", "--", "sh", "-c", LIVES.format(turns=40, end=end))
        # If a terminal closes before the keeper has started the program, nothing ran in it.
        screen.watch(0.4 + chance.random() * 2)
        screen.close()
        code = screen.end(timeout_s=20)
        lived = wait_until(end.exists, 20)
        is_right = code in (0, 129, -signal.SIGHUP)
        wrong = None if is_right else f"the view ended with {code}"
        tally.count(wrong or (None if lived else "the program did not come to its end"))
    return [tally]


def attack_signals(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Signals to `gnntop run`, at any moment."""
    tally = Tally("signals to `gnntop run`", "no panic; the program gets what it should and `run` ends with it")
    for number in range(max(5, int(SIGNALLED * share))):
        end, ready = gnntop.home / f"signalled-{number}", gnntop.home / f"ready-{number}"
        sent = PASSED_ON[number % len(PASSED_ON)]
        script = f"trap '' {sent.name[3:]}; touch {ready}; {LIVES.format(turns=30, end=end)}"
        run = gnntop.start("run", "--plain", "--", "sh", "-c", script)
        wrong = None if wait_until(ready.exists, 20) else "the program did not start"
        time.sleep(chance.random())
        os.kill(run.pid, sent)
        code = run.wait(timeout=30)
        if not wait_until(end.exists, 20):
            wrong = f"{sent.name}: the program did not come to its end"
        if code not in (0, 128 + sent, -sent):
            wrong = f"{sent.name}: `gnntop run` ended with {code}"
        tally.count(wrong)
    return [tally]

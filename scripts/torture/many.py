"""More threads and marks than a training ever has: the program ends as it would alone, in bounded memory."""

from __future__ import annotations

import random

from pythons import watched
from tally import Tally
from under_test import Gnntop

THREADS = 100_000
MARKS = 10_000_000
# What the program may grow by after its first tenth.
MOST_GROWTH_KIB = 32 * 1024

PROGRAM = """
import resource, threading, gnntop
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def thread():
    with gnntop.span("in a thread"): pass
def more(share):
    for _ in range(int({threads} * share)):
        one = threading.Thread(target=thread)
        one.start()
        one.join()
    for number in range(int({marks} * share)):
        gnntop.mark("again" if number % 3 else str(number % {texts}))
gnntop.step()
more(0.1)
before = peak()
for _ in range({steps} - 1):
    more(0.9 / ({steps} - 1))
    gnntop.step()
assert peak() - before < {growth}, f"{{peak() - before}} KiB more"
"""


def attack(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """Threads one after the other, each with a span, and marks of few and many texts."""
    threads, marks = int(THREADS * share), int(MARKS * share)
    tally = Tally("threads and marks without end", "the program's own end, bounded memory, and all steps are seen")
    tally.note = f"{threads:,} threads, {marks:,} marks"
    texts = chance.choice((1, 100, 100_000))
    program = PROGRAM.format(threads=threads, marks=marks, texts=texts, steps=20, growth=MOST_GROWTH_KIB)
    tally.count(watched(gnntop, program, "", timeout_s=1200))
    return [tally]

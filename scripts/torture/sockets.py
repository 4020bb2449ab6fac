"""Clients of `gnntop serve` that say nothing, or nonsense, and never leave."""

from __future__ import annotations

import random
import re
import resource
import socket
import subprocess
import time

from tally import Tally
from under_test import Gnntop

SOCKETS = 1000
SCRAPES = 20
SCRAPE_S = 15
REQUESTS = (b"", b"G", b"GET /metrics HTTP/1.1\r\n", b"GET " + b"a" * 100_000, b"\0" * 4096, b"POST / HTTP/1.1\r\n\r\n")


def attack(gnntop: Gnntop, chance: random.Random, share: float) -> list[Tally]:
    """A scrape is answered beside all of them."""
    tally = Tally("silent and hostile clients of `serve`", f"each scrape is answered within {SCRAPE_S} s")
    most = min(SOCKETS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 100)
    server = gnntop.start("serve", gnntop.recordings[-1], "--metrics", "127.0.0.1:0", stdout=subprocess.PIPE)
    assert server.stdout
    line = server.stdout.readline()
    found = re.search(rb"http://127\.0\.0\.1:(\d+)/", line)
    if not found:
        tally.count(f"it did not begin: {line!r}")
        return [tally]
    port, slowest = int(found[1]), 0.0
    for _ in range(max(1, int(SCRAPES * share))):
        clients = [_client(port, chance) for _ in range(max(300, int(most * share)))]
        tally.note = f"{len(clients):,} of them"
        began = time.monotonic()
        answer = _scrape(port)
        slowest = max(slowest, time.monotonic() - began)
        tally.count(None if b"# EOF" in answer else f"a scrape was not answered: {answer[:100]!r}")
        for client in clients:
            client.close()
    server.kill()
    server.wait()
    tally.note += f", the slowest scrape took {slowest:.1f} s"
    return [tally]


def _client(port: int, chance: random.Random) -> socket.socket:
    client = socket.socket()
    client.settimeout(5)
    try:
        client.connect(("127.0.0.1", port))
        client.sendall(chance.choice(REQUESTS))
    except OSError:
        pass  # turned away
    return client


def _scrape(port: int) -> bytes:
    """Like Prometheus: retries if it was turned away, until its time is over."""
    give_up_at = time.monotonic() + SCRAPE_S
    answer = b""
    while time.monotonic() < give_up_at and b"# EOF" not in answer:
        answer = b""
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=SCRAPE_S) as client:
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                while chunk := client.recv(1 << 16):
                    answer += chunk
        except OSError:
            time.sleep(0.05)
    return answer

#!/usr/bin/env python3
"""What `gnntop run --otlp` costs: the keeper's CPU time with and without it, and the bytes of a request.

    scripts/otlp-cost.py target/release/gnntop [SECONDS]

A program of 100 steps a second with four spans each, and a request a second to a stand-in collector on loopback.
"""

import gzip
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = """
import gnntop, sys, time
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for phase in ('load', 'forward', 'backward', 'optimizer'):
        with gnntop.span(phase):
            time.sleep(0.002)
    gnntop.step()
"""


class Collector(http.server.BaseHTTPRequestHandler):
    bodies: list[bytes] = []

    def do_POST(self):
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


def cpu_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def keeper_of(folder: str) -> int | None:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
        except OSError:
            continue
        if words[1:2] == [b"keep"] and os.path.join(folder, "program.py").encode() in words:
            return int(pid)
    return None


def run(gnntop: str, seconds: float, options: list[str]) -> float:
    """Runs the program; gives the CPU time of its keeper."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program.py")
        with open(program, "w") as file:
            file.write(PROGRAM)
        command = [gnntop, "run", "--plain", *options, "--", sys.executable, program, str(seconds)]
        started = subprocess.Popen(
            command,
            env=os.environ | {"GNNTOP_DIR": folder, "OTEL_METRIC_EXPORT_INTERVAL": "1000"},
            stdout=subprocess.DEVNULL,
        )
        used = 0.0
        while started.poll() is None:
            keeper = keeper_of(folder)
            try:
                used = cpu_seconds(keeper) if keeper else used
            except OSError:
                pass
            time.sleep(0.1)
        return used


def main() -> None:
    gnntop, seconds = os.path.abspath(sys.argv[1]), float((sys.argv[2:] or ["60"])[0])
    server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    alone = run(gnntop, seconds, [])
    sending = run(gnntop, seconds, ["--otlp", f"http://127.0.0.1:{server.server_port}"])
    body = Collector.bodies[-1]
    values = body.count(b'"timeUnixNano"')
    json.loads(body)
    print(
        f"{len(Collector.bodies)} requests in {seconds:.0f} s; the last one: {values} values, {len(body)} bytes, "
        f"{len(gzip.compress(body))} with gzip"
    )
    print(
        f"keeper: {alone:.2f} s of CPU without --otlp, {sending:.2f} s with it, "
        f"{(sending - alone) / len(Collector.bodies) * 1e3:.1f} ms a request with following the session"
    )


if __name__ == "__main__":
    main()

"""A coding agent's way with ``gnntop mcp --allow-run``: profile a script it has not seen, change a line, prove it."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from programs import GNNTOP, REACH, environment

pytestmark = pytest.mark.skipif(not GNNTOP.exists(), reason=f"no {GNNTOP}: cargo build")

SCRIPT = """
import random, time, torch
from torch.utils.data import DataLoader

torch.manual_seed(0)
items = [(torch.randn(8), torch.randn(1)) for _ in range(256)]

def padded(batch):
    time.sleep(0.008)  # pads each item in a loop of Python
    return tuple(map(torch.stack, zip(*batch)))

model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for epoch in range(8):
    for x, y in DataLoader(items, batch_size=16, collate_fn=padded):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
"""


class Client:
    """Asks the server line by line."""

    def __init__(self, directory: Path) -> None:
        self.server = subprocess.Popen(
            [GNNTOP, "mcp", "--allow-run"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=directory,
            env=environment(directory / "sessions") | REACH,
            text=True,
        )

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The tool's answer, waited for as long as it says that its job goes on."""
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        result = json.loads(self.server.stdout.readline())["result"]
        assert not result["isError"], result
        answer: dict[str, Any] = result["structuredContent"]
        job = answer["data"].get("job")
        return self.call(name, job=job) if job else answer

    def close(self) -> None:
        assert self.server.stdin is not None
        self.server.stdin.close()
        assert self.server.wait(60) == 0


def test_a_slow_collate_is_found_and_its_repair_proven(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    slow, fast = tmp_path / "slow.py", tmp_path / "fast.py"
    slow.write_text(SCRIPT)
    client = Client(tmp_path)
    found = client.call("profile", command=[sys.executable, str(slow)])
    assert found["summary"].startswith("data-bound"), found
    named = json.dumps(found["data"]["findings"][0])
    line = next(at for at, text in enumerate(SCRIPT.splitlines(), 1) if "time.sleep" in text)
    assert "padded" in named, named
    assert f"slow.py:{line}" in named, named
    fast.write_text(SCRIPT.replace("    time.sleep(0.008)  # pads each item in a loop of Python\n", ""))
    commands = [shlex.join(["exec", sys.executable, str(path)]) for path in (slow, fast)]
    proven = client.call("prove", baseline=commands[0], candidate=commands[1], pairs=6)
    assert (proven["data"]["verdict"], proven["next_step"]) == ("faster", "keep the change"), proven
    client.close()

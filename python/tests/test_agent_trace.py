"""A coding agent's ``trace`` of a live training, and what becomes of it when the agent is gone."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from programs import GNNTOP
from test_agent import Client
from test_deep_trace import Training, wait_until

pytestmark = pytest.mark.skipif(not GNNTOP.exists(), reason=f"no {GNNTOP}: cargo build")

# Each step takes so long that 100 of them are not over when the client goes, nor when a call is answered.
SLOW = "model.register_forward_hook(lambda *_: time.sleep(1))"


def test_a_live_training_is_traced_for_a_client(tmp_path: Path) -> None:
    training = Training(tmp_path)
    session = training.session()
    client = Client(tmp_path)
    answer = client.call("trace", run=str(session), steps=3, output="t.json")
    assert "3 steps" in answer["summary"], answer
    assert any("aten::" in line or "Backward" in line for line in answer["data"]["operators"]), answer
    trace = json.loads((tmp_path / "t.json").read_text())
    steps = [event for event in trace["traceEvents"] if str(event.get("name", "")).startswith("ProfilerStep#")]
    assert len(steps) == 3, steps
    client.close()
    ended = training.end()
    assert ended.code == 0, ended


def ask(client: Client, session: Path) -> None:
    """Asks for a long trace, without reading the answer, and waits until the program has begun with it."""
    arguments = {"run": str(session), "steps": 100}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "trace", "arguments": arguments}}
    assert client.server.stdin is not None
    client.server.stdin.write(json.dumps(request) + "\n")
    client.server.stdin.flush()
    wait_until(lambda: (session / "answer").exists() and (session / "request").exists())


@pytest.mark.parametrize("how", ["killed", "asked to end", "client killed"])
def test_a_trace_is_withdrawn_when_the_client_goes(how: str, tmp_path: Path) -> None:
    training = Training(tmp_path, before=SLOW)
    session = training.session()
    client = Client(tmp_path)
    ask(client, session)
    if how == "client killed":  # the server finds that nobody reads its answers
        for pipe in (client.server.stdin, client.server.stdout):
            assert pipe is not None
            pipe.close()
    else:
        client.server.send_signal(signal.SIGKILL if how == "killed" else signal.SIGTERM)
    wait_until(lambda: not list(session.glob("[rt][re][qa]*")) and not (session / "answer").exists())
    client.server.wait(60)
    ended = training.end()
    assert ended.code == 0, ended
    assert not list(session.glob("trace*")), "and no trace comes later"

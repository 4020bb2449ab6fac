"""Checkpoints that another thread saves, beside the loop that trains."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from programs import GNNTOP, recorded, report, steps_of

pytestmark = pytest.mark.skipif(not GNNTOP.exists(), reason=f"no {GNNTOP}: cargo build")

PROGRAM = """
import io, threading
import torch
from torch import nn

torch.set_num_threads(1)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(40):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    if step % 10 == 5:
        saving = threading.Thread(target=torch.save, args=(model.state_dict(), io.BytesIO()))
        saving.start()
        saving.join()
"""


def test_what_a_thread_saves_is_marked_in_the_loop_that_trains(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    ran, recording = recorded([sys.executable, str(script)], tmp_path)
    assert ran.code == 0, ran.err
    seen = report(recording)
    assert steps_of(seen) == 40
    assert {mark["text"]: mark["count"] for mark in seen["marks"]}.get("checkpoint by another thread") == 4, seen[
        "marks"
    ]
    assert not any(seen["losses"].values()), seen["losses"]

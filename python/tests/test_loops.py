"""Training scripts that know nothing of gnntop, run alone and under ``gnntop run``: the program must not notice.

They train with the real libraries of the environment that scripts/python-env.sh makes. Its Python runs these tests.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from programs import GNNTOP, LOOPS, assert_tiled, recorded, report, run, steps_of, times

pytestmark = pytest.mark.skipif(not GNNTOP.exists(), reason=f"no {GNNTOP}: cargo build")

# Loop, arguments, steps, phases that must be there.
PLAIN = ("data wait", "forward", "loss", "backward", "optimizer")
FULL_BATCH = PLAIN[1:]
CASES = [
    ("plain", [], 20, (*PLAIN, "validation")),
    ("micro_batches", [], 10, PLAIN),
    ("gan", [], 25, PLAIN),
    ("folds", [], 20, PLAIN),
    ("lbfgs", [], 20, FULL_BATCH),
    ("scaler", [], 20, PLAIN),
    ("raises", [], 12, PLAIN),
    ("recovers", [], 17, PLAIN),
    ("manual", [], 120, ("backward",)),
    ("by_hand", ["parameters"], 60, PLAIN),
    ("by_hand", ["two batches"], 30, PLAIN),
    ("by_hand", ["optimizer"], 60, PLAIN),
    ("by_hand", ["fastai"], 60, PLAIN),
    ("scripted", [], 25, ("data wait", "backward", "optimizer")),
    ("inference", ["batches"], 20, ("data wait", "forward")),
    ("inference", ["calls"], 30, ("forward",)),
    ("inference", ["then trains"], 20, (*PLAIN, "validation")),
    ("inference", ["generates"], 32, ("forward",)),
    ("reinforces", ["evaluating"], 30, (*FULL_BATCH, "rollout")),
    ("reinforces", ["training"], 30, (*FULL_BATCH, "rollout")),
    ("by_hand", ["functional"], 60, ("data wait", "backward")),
    ("by_hand", ["nested"], 60, ("backward",)),
    ("threads", ["in turn"], 90, PLAIN),
    ("threads", ["together"], 30, PLAIN),
    ("native_thread", [], 20, PLAIN),
    ("full_batch", [], 40, (*FULL_BATCH, "validation")),
    ("workers", ["fork"], 20, (*PLAIN, "validation")),
    ("workers", ["fork", "persistent"], 20, (*PLAIN, "validation")),
    ("workers", ["spawn"], 20, (*PLAIN, "validation")),
    ("workers", ["forkserver"], 20, (*PLAIN, "validation")),
    ("iterable", [], 20, PLAIN),
    ("pyg_graphs", [], 20, (*PLAIN, "transfer")),
    ("pyg_neighbors", ["0"], 20, (*PLAIN, "sample", "gather")),
    ("pyg_neighbors", ["2"], 20, PLAIN),
    ("lightning_fit", [], 20, (*PLAIN, "transfer", "validation")),
    ("lightning_manual", [], 20, ("data wait", "transfer", "forward", "backward", "optimizer")),
    ("trainer", [], 20, (*PLAIN, "transfer", "validation", "checkpoint")),
    ("accelerated", [], 10, (*PLAIN, "transfer")),
    ("compiled", ["model"], 20, PLAIN),
    ("compiled", ["fullgraph"], 20, ("data wait", "forward", "backward", "optimizer")),
    ("compiled", ["module"], 20, PLAIN),
    ("compiled", ["step"], 20, ("data wait", "forward", "backward", "optimizer")),
    ("compiled", ["inductor"], 20, PLAIN),
]


@pytest.mark.parametrize(("loop", "arguments", "steps", "phases"), CASES)
def test_the_program_does_not_notice_and_is_seen(
    loop: str, arguments: list[str], steps: int, phases: tuple[str, ...], tmp_path: Path
) -> None:
    command = [sys.executable, str(LOOPS / f"{loop}.py"), *arguments]
    with ThreadPoolExecutor() as pool:  # side by side: most of the time is the import of torch
        without_us = pool.submit(run, command, tmp_path / "alone")
        watched, recording = recorded(command, tmp_path / "watched")
        alone = without_us.result()
    assert (watched.code, watched.out.decode(), watched.err.decode()) == (
        alone.code,
        alone.out.decode(),
        alone.err.decode(),
    )
    seen = report(recording)
    assert steps_of(seen) == steps
    assert not [fact for fact in seen["session"]["facts"] if fact.startswith("not recorded")]
    assert set(phases) <= set(times(seen))
    assert_tiled(seen)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_of_multiprocessing_trains_and_ends_well(method: str, tmp_path: Path) -> None:
    watched, recording = recorded([sys.executable, str(LOOPS / "process.py"), method], tmp_path)
    seen = report(recording)
    assert (watched.code, steps_of(seen), seen["session"]["state"]) == (0, 20, "ended")

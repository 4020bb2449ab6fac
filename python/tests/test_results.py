"""Figures and the report of a session in the runs of trackers, at their end, where that is asked for."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from programs import GNNTOP, REACH, environment

from gnntop.hooks import figures, results

REPORT = {
    "verdict": "gc-bound (58 %)",
    "findings": {
        "found": [
            {"kind": "stall", "share": 0.5, "summary": "first"},
            {"kind": "stall", "share": 0.1, "summary": "second"},
            {"kind": "drift", "share": None, "summary": "slower"},
        ]
    },
    "steps": {"total": 60},
    "throughput": {"steps_per_s": 40.0},
    "phases": [
        {"name": "data wait", "share": 0.25, "p50_ns": 1, "p99_ns": 2},
        {"name": "gap", "share": None, "p50_ns": 1, "p99_ns": 2},
        {"name": "period", "share": 1.0, "p50_ns": 7e6, "p99_ns": 8e6},
        {"name": "step", "share": 1.0, "p50_ns": 5e6, "p99_ns": None},
    ],
    "energy": {"total": {"device": {"joules": 12.0}}, "step": None},
}


def test_keys_are_flat_and_what_is_absent_has_none() -> None:
    assert dict(figures._numbers(REPORT)) == {
        "gnntop/steps": 60,
        "gnntop/steps_per_s": 40.0,
        "gnntop/share/data wait": 0.25,
        "gnntop/step_p50_ms": 5.0,
        "gnntop/finding/stall": 0.5,
        "gnntop/energy_J": 12.0,
    }
    assert dict(figures._texts(REPORT)) == {
        "gnntop/verdict": "gc-bound (58 %)",
        "gnntop/findings": "stall: first\ndrift: slower",
    }


def test_each_writer_gets_its_results_though_one_before_had_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    class Worker:
        def is_here(self) -> bool:
            return True

        def within(self, _: float, __: object) -> str:
            written.append(1)
            return ""

    class Writer:
        logdir = ""

    written: list[int] = []
    monkeypatch.setattr(results, "_worker", Worker())
    monkeypatch.setattr(results._native, "directory", lambda: "somewhere")
    for _ in range(20):
        writer = Writer()
        results._writers.add(writer)
        results._to_tensorboard(writer)
        del writer
    assert len(written) == 20


def test_a_tracker_that_hangs_or_raises_is_not_waited_for() -> None:
    worker, never = results._Worker(), threading.Event()
    assert worker.within(60, lambda: None) == ""
    assert worker.within(60, lambda: 1 // 0) == "ZeroDivisionError: integer division or modulo by zero"
    assert worker.within(0.01, never.wait) == "not done within 0 s"
    never.set()


TRAINING = """
import json, os, sys
import torch
from torch import nn
folder = sys.argv[1]
{open}
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(40):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
    log(loss.item())
{end}
"""


def trained(begin: str, end: str, directory: Path, to: str) -> subprocess.CompletedProcess[bytes]:
    """Runs the training with and without an end of its own, under ``gnntop run --to``."""
    script, logs = directory / "train.py", directory / "logs"
    logs.mkdir()
    script.write_text(TRAINING.format(open=begin, end=end))
    options = ["--to", to] if to else []
    command = [GNNTOP, "run", "--plain", *options, "--", sys.executable, script, logs]
    variables = environment(directory / "sessions") | REACH
    return subprocess.run(command, env=variables, capture_output=True, timeout=300, cwd=directory)


STAND_IN = f"""
sys.path.insert(0, {str(Path(__file__).parent / "stand_ins")!r})
from wandb.sdk.wandb_run import Run
run = Run(folder)
log = lambda value: run.log({{"loss": value}})
"""
SHOW = "run.finish(); json.dump([run.summary, run.saved], open(folder + '/seen', 'w'))"


def seen_by_stand_in(directory: Path) -> tuple[dict[str, Any], list[str]]:
    summary, saved = json.loads((directory / "logs/seen").read_text())
    return summary, saved


def test_results_are_written_before_a_run_ends(tmp_path: Path) -> None:
    done = trained(STAND_IN, SHOW, tmp_path, "wandb")
    assert done.returncode == 0, done.stderr
    summary, saved = seen_by_stand_in(tmp_path)
    assert summary["gnntop/steps"] == 40
    assert {"gnntop/step_p50_ms", "gnntop/share/backward"} <= set(summary)
    assert saved == [str(tmp_path / "logs/gnntop-report.html")]
    assert Path(saved[0]).read_bytes().startswith(b"<!DOCTYPE html>")
    assert b"results are in the run of wandb" in done.stderr


def test_nothing_is_written_that_was_not_asked_for(tmp_path: Path) -> None:
    done = trained(STAND_IN, SHOW, tmp_path, "")
    assert done.returncode == 0, done.stderr
    assert seen_by_stand_in(tmp_path) == ({}, [])
    assert b"results" not in done.stderr


def test_a_tracker_that_fails_changes_nothing_for_the_program(tmp_path: Path) -> None:
    broken = STAND_IN + "class Broken(dict):\n    def update(self, _): raise ConnectionError('gone')\n"
    done = trained(broken + "run.summary = Broken()\n", SHOW, tmp_path, "wandb,mlflow")
    assert done.returncode == 0, done.stderr
    assert seen_by_stand_in(tmp_path) == ({}, [])
    assert b"warning: results are not in wandb: ConnectionError: gone" in done.stderr
    assert b"warning: results are not in mlflow: it had no open run" in done.stderr


OPEN = {
    "wandb": """
os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=folder)
import wandb
wandb.init(project="test")
log = lambda value: wandb.log({"loss": value})
end = wandb.finish
""",
    "tensorboard": """
from torch.utils.tensorboard import SummaryWriter
writer = SummaryWriter(folder)
log = lambda value: writer.add_scalar("loss", value)
end = writer.close
""",
    "tensorboardX": """
from tensorboardX import SummaryWriter
writer = SummaryWriter(folder)
log = lambda value: writer.add_scalar("loss", value)
end = writer.close
""",
    "mlflow": """
import mlflow
mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
mlflow.set_experiment(experiment_id=mlflow.create_experiment("test", f"file://{folder}/artifacts"))
log = lambda value: mlflow.log_metric("loss", value)
end = mlflow.end_run
""",
    "trackio": """
os.environ.update(TRACKIO_DIR=folder)
import trackio
trackio.init(project="test")
log = lambda value: trackio.log({"loss": value})
end = trackio.finish
""",
}


def wandb_summary(logs: Path) -> dict[str, Any]:
    """From the offline file's messages: a key, and its value as JSON with a length before it."""
    (path,) = logs.glob("wandb/offline-run-*/run-*.wandb")
    items = re.finditer(rb"(gnntop/[ -~]+)\x82\x01(.)", data := path.read_bytes(), re.DOTALL)
    return {item[1].decode(): data[item.end() : item.end() + item[2][0]] for item in items}


def tensorboard_summary(logs: Path) -> dict[str, Any]:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(logs))
    events.Reload()
    texts = {key: events.Tensors(key)[0].tensor_proto.string_val[0] for key in events.Tags()["tensors"]}
    numbers = {key: events.Scalars(key)[-1].value for key in events.Tags()["scalars"] if key != "loss"}
    return numbers | {key.removesuffix("/text_summary"): value for key, value in texts.items()}


def mlflow_summary(logs: Path) -> dict[str, Any]:
    with sqlite3.connect(logs / "mlflow.db") as store:
        return dict(store.execute("select key, value from latest_metrics union select key, value from tags"))


def trackio_summary(logs: Path) -> dict[str, Any]:
    with sqlite3.connect(logs / "test.db") as store:
        ((last,),) = store.execute("select metrics from metrics order by id desc limit 1")
        return json.loads(last)


SUMMARIES = {
    "wandb": (wandb_summary, "wandb/offline-run-*/files/gnntop-report.html"),
    "tensorboard": (tensorboard_summary, "gnntop-report.html"),
    "tensorboardX": (tensorboard_summary, "gnntop-report.html"),
    "mlflow": (mlflow_summary, "artifacts/*/artifacts/gnntop-report.html"),
    "trackio": (trackio_summary, "artifacts/test/blobs/*/*/*"),
}


@pytest.mark.parametrize("end", ["end()", ""], ids=["ended", "left open"])
@pytest.mark.parametrize("library", OPEN)
def test_results_are_where_the_library_reads_them(library: str, end: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    done = trained(OPEN[library], end, tmp_path, "tensorboard" if library == "tensorboardX" else library)
    assert done.returncode == 0, done.stderr
    summary, page = SUMMARIES[library]
    seen = summary(tmp_path / "logs")
    assert float(seen["gnntop/steps"]) == 40
    assert {"gnntop/step_p50_ms", "gnntop/share/backward"} <= set(seen), os.linesep.join(seen)
    (written,) = (tmp_path / "logs").glob(page)
    assert written.read_bytes().startswith(b"<!DOCTYPE html>")

"""How far a training is meant to go, as its ``Trainer`` says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from programs import GNNTOP, LOOPS, recorded, report

needs_binary = pytest.mark.skipif(not GNNTOP.exists(), reason=f"no {GNNTOP}: cargo build")


def goal_of(script: Path, directory: Path) -> dict[str, Any]:
    """The goal in the report of a program, whose hooks all have worked."""
    ran, recording = recorded([sys.executable, str(script)], directory)
    assert ran.code == 0, ran.err
    session = report(recording)["session"]
    assert not [key for key in session["facts"] if "switched off" in key], session["facts"]
    goal: dict[str, Any] = session["goal"]
    return goal


@needs_binary
def test_lightning_s_trainer_says_its_epochs(tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    goal = goal_of(LOOPS / "lightning_fit.py", tmp_path)
    # Two epochs of 20 batches, two of which are one step.
    assert (goal["number"], goal["unit"], goal["by"]) == (20, "steps", "Trainer.max_epochs")
    assert (goal["steps"], goal["share"]) == (20, 1.0)


@needs_binary
def test_lightning_s_trainer_says_its_steps(tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    script = tmp_path / "train.py"
    script.write_text((LOOPS / "lightning_fit.py").read_text().replace("max_epochs=2", "max_steps=13"))
    goal = goal_of(script, tmp_path / "watched")
    assert (goal["number"], goal["by"], goal["share"]) == (13, "Trainer.max_steps", 1.0)


@needs_binary
def test_hugging_face_s_trainer_says_its_steps(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    goal = goal_of(LOOPS / "trainer.py", tmp_path)
    assert (goal["number"], goal["by"], goal["steps"], goal["share"]) == (20, "TrainingArguments", 20, 1.0)


AGAIN = """
    trainer.args.max_steps = 7
    trainer.args.num_train_epochs = 1
    trainer.create_optimizer_and_scheduler = type(trainer).create_optimizer_and_scheduler.__get__(trainer)
    trainer.optimizer = trainer.lr_scheduler = None
    trainer.train()
"""


@needs_binary
def test_second_training_goes_on_from_the_first(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    script = tmp_path / "train.py"
    script.write_text((LOOPS / "trainer.py").read_text() + AGAIN)
    goal = goal_of(script, tmp_path / "watched")
    assert (goal["number"], goal["steps"], goal["share"]) == (27, 27, 1.0)


@needs_binary
def test_steps_before_a_checkpoint_count(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    checkpoints, source = tmp_path / "checkpoints", (LOOPS / "trainer.py").read_text()
    whole = source.replace("with tempfile.TemporaryDirectory() as folder:", f"for folder in [{str(checkpoints)!r}]:")
    first = tmp_path / "first.py"
    first.write_text(whole)
    ran, _ = recorded([sys.executable, str(first)], tmp_path / "first")
    assert ran.code == 0, ran.err
    again = tmp_path / "again.py"
    resumes = f"trainer.train(resume_from_checkpoint={str(checkpoints / 'checkpoint-20')!r})"
    again.write_text(whole.replace("num_train_epochs=2", "num_train_epochs=3").replace("trainer.train()", resumes))
    goal = goal_of(again, tmp_path / "again")
    assert (goal["number"], goal["steps"], goal["share"]) == (30, 30, 1.0)

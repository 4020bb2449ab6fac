"""Values that a program logs: read where they are numbers already, and nothing else of the program is touched."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Recorder
from programs import LOOPS, recorded, report, run

from gnntop.hooks import logged

INF = float("inf")


@pytest.fixture(autouse=True)
def _nothing_is_known() -> None:
    logged._forget()
    logged._left_out = 0


class Untouchable:
    """Raises where a tensor's value would be read."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(name)

    __float__ = __int__ = __hash__ = __eq__ = __getattribute__  # type: ignore[assignment]


class OwnDict(dict[Any, Any]):
    """Raises where its own code would run."""

    def items(self) -> Any:
        raise AssertionError

    __iter__ = keys = values = items


def test_numbers_are_recorded_and_nothing_else(recorder: Recorder) -> None:
    wandb = logged.reader("wandb", logged.several(1, "data"))
    numbers = {"float": 0.5, "int": 3, "f32": np.float32(0.25), "i64": np.int64(7), "f64": np.float64(1.5)}
    others = {"tensor": Untouchable(), "text": "x", "bool": True, "huge": 10**400, "none": None, 3: 1.0}
    wandb(object(), numbers | others)
    assert recorder.counters == [(name, float(value)) for name, value in numbers.items()]
    assert recorder.facts == {}


@pytest.mark.parametrize("data", [OwnDict(loss=1.0), OrderedDict(loss=1.0)])
def test_dictionaries_of_other_types_are_read_without_their_code(data: dict[str, float], recorder: Recorder) -> None:
    logged.reader("wandb", logged.several(1, "data"))(object(), data=data)
    assert recorder.counters == [("loss", 1.0)]


def test_calls_that_the_library_refuses_are_no_errors_of_ours(recorder: Recorder) -> None:
    single = logged.reader("tensorboard", logged.single(1, "tag", "scalar_value"))
    several = logged.reader("wandb", logged.several(1, "data"))
    below = logged.reader("tensorboard", logged.several_below)
    for arguments in [(), (1,), (1, 2), (1, Untouchable()), (1, Untouchable(), Untouchable(), 4, 5)]:
        for reader in (single, several, below):
            reader(*arguments, unknown=1)
    assert recorder.counters == []
    assert recorder.facts == {}


def test_arguments_are_found_by_place_and_by_keyword(recorder: Recorder) -> None:
    logged.reader("tensorboard", logged.single(1, "tag", "scalar_value"))(object(), "a", 1.0)
    logged.reader("tensorboard", logged.single(1, "tag", "scalar_value"))(object(), tag="b", scalar_value=2.0)
    logged.reader("tensorboard", logged.several_below)(object(), "main", {"x": 3.0})
    logged.reader("tqdm", logged.postfix)(object(), {"c": 4.0}, refresh=False, d=5.0)
    assert recorder.counters == [("a", 1.0), ("b", 2.0), ("main/x", 3.0), ("c", 4.0), ("d", 5.0)]


def test_a_name_is_of_the_library_that_logs_it_first(recorder: Recorder) -> None:
    for library in ("wandb", "mlflow", "wandb"):
        logged.reader(library, logged.several(0, "metrics"))({"loss": 1.0})
    assert recorder.counters == [("loss", 1.0)] * 2


def test_values_that_are_not_finite_are_recorded_and_marked_once(recorder: Recorder) -> None:
    values = logged.reader("wandb", logged.several(0, "metrics"))
    for value in (1.0, float("nan"), float("nan")):
        values({"loss": value, "norm": INF})
    assert [str(value) for name, value in recorder.counters if name == "loss"] == ["1.0", "nan", "nan"]
    assert recorder.marks == ["norm is inf", "loss is nan"]


def test_names_are_bounded_and_the_rest_is_counted(recorder: Recorder) -> None:
    values = logged.reader("wandb", logged.several(0, "metrics"))
    for name in range(300):
        values({f"n{name}": 1.0})
    assert len(recorder.counters) == 256
    assert recorder.facts == {"logged values beyond 256 names": "32 or more"}


def test_what_a_reader_raises_switches_it_off(recorder: Recorder) -> None:
    def read(_args: object, _kwargs: object) -> logged.Values:
        raise ZeroDivisionError("own")

    broken = logged.reader("broken", read)
    broken()
    broken()
    assert recorder.facts == {"hook switched off: values of broken": "ZeroDivisionError: own"}


def counts(seen: dict[str, Any]) -> dict[str, int]:
    return {counter["name"]: counter["count"] for counter in seen["counters"]}


def test_stand_ins_are_read_and_the_program_does_not_notice(tmp_path: Path) -> None:
    command = [sys.executable, str(LOOPS / "logged.py")]
    alone = run(command, tmp_path / "alone")
    watched, recording = recorded(command, tmp_path / "watched")
    assert (watched.code, watched.out, watched.err) == (alone.code, alone.out, alone.err)
    seen = report(recording)
    named = {"tb/accuracy": 20, "tb/a": 20, "tb/b": 20, "mlflow one": 20, "mlflow two": 20, "trackio": 20}
    assert counts(seen) == {"loss": 15} | named
    (loss,) = (line for line in seen["logged"] if line["name"] == "loss")
    assert (loss["not_finite"], loss["last_good_step"], loss["first_not_finite_step"]) == (5, 15, 16)
    assert [mark["text"] for mark in seen["marks"] if "loss" in mark["text"]] == ["loss is nan"]
    (found,) = (finding for finding in seen["findings"]["found"] if finding["kind"] == "divergence")
    assert (found["summary"], found["confidence"]) == ("loss is NaN since step 16", "high"), found


LIBRARIES = {
    "wandb": """
import os
os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=sys.argv[1])
import wandb
wandb.init(project="test")
log = lambda value: wandb.log({"loss": value})
""",
    "tensorboard": """
from torch.utils.tensorboard import SummaryWriter
writer = SummaryWriter(sys.argv[1])
log = lambda value: writer.add_scalar("loss", value)
""",
    "mlflow": """
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
import mlflow
mlflow.set_tracking_uri("file://" + sys.argv[1] + "/runs")
log = lambda value: mlflow.log_metric("loss", value)
""",
    "trackio": """
import os
os.environ.update(TRACKIO_DIR=sys.argv[1])
import trackio
trackio.init(project="test")
log = lambda value: trackio.log({"loss": value})
""",
    "tqdm": """
from tqdm import tqdm
bar = tqdm(total=20, file=open(os.devnull, "w"))
log = lambda value: bar.set_postfix(loss=value)
""",
}
TRAINING = """
import os, sys
import torch
from torch import nn
{library}
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(20):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
    log(loss.item())
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_loss_is_seen_where_a_library_logs_it(library: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    script, folder = tmp_path / "train.py", tmp_path / "logs"
    script.write_text(TRAINING.format(library=LIBRARIES[library]))
    folder.mkdir()
    ran, recording = recorded([sys.executable, str(script), str(folder)], tmp_path / "watched")
    assert ran.code == 0, ran.err
    seen = report(recording)
    assert counts(seen)["loss"] == 20
    assert seen["session"].get("hooks_switched_off") is None, json.dumps(seen["session"])


LIGHTNING = """
import logging, sys, warnings
import lightning, torch
from lightning.pytorch.loggers import CSVLogger
from torch import nn
warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = nn.Linear(8, 1)

    def training_step(self, batch, index):
        loss = self.model(batch).square().mean()
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3)


trainer = lightning.Trainer(
    max_epochs=1, accelerator="cpu", logger=CSVLogger(sys.argv[1]), log_every_n_steps=1,
    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
)
trainer.fit(Module(), torch.utils.data.DataLoader(torch.randn(80, 8), batch_size=4))
"""


def test_lightning_s_logger_is_read(tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    script = tmp_path / "train.py"
    script.write_text(LIGHTNING)
    ran, recording = recorded([sys.executable, str(script), str(tmp_path / "logs")], tmp_path / "watched")
    assert ran.code == 0, ran.err
    seen = report(recording)
    assert counts(seen)["train_loss"] == 20
    assert [line["name"] for line in seen["logged"]] == ["train_loss"]


def test_hugging_face_s_trainer_is_read(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    ran, recording = recorded([sys.executable, str(LOOPS / "trainer.py")], tmp_path)
    assert ran.code == 0, ran.err
    seen = report(recording)
    assert counts(seen)["loss"] == 20
    assert counts(seen)["eval_loss"] == 2

"""Writes the histories of this folder with the trackers' own libraries: python make.py FOLDER [NAME...] (see SOURCE.md)."""

import math
import os
import shutil
import sqlite3
import sys
import time
from pathlib import Path

STEPS = 40
SLOW = 30  # the step that takes 0.2 s more


def train(log):
    for step in range(1, STEPS + 1):
        time.sleep(0.22 if step == SLOW else 0.02)
        values = {"train/loss": 1.0 / step if step != 35 else math.nan}
        if step % 10 == 0:
            values["val/accuracy"] = step / 100
        log(values, step)


def tensorboard(folder):
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder / "torch"))
    train(lambda values, step: [writer.add_scalar(name, value, step) for name, value in values.items()])
    writer.add_text("note", "text is no number")
    writer.close()

    import numpy
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.plugins.scalar import metadata
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    from tensorboard.util import tensor_util

    # As TensorFlow 2's `tf.summary.scalar` and Keras write it: a tensor instead of a number, here every 5 steps.
    writer = EventFileWriter(str(folder / "tensors"))
    for step in range(0, STEPS, 5):
        time.sleep(0.05)
        tensor = tensor_util.make_tensor_proto(numpy.float32(step))
        value = summary_pb2.Summary.Value(
            tag="epoch_loss", tensor=tensor, metadata=metadata.create_summary_metadata("", "")
        )
        summary = summary_pb2.Summary(value=[value])
        writer.add_event(event_pb2.Event(wall_time=time.time(), step=step, summary=summary))
    writer.close()


def wandb(folder):
    import wandb

    settings = wandb.Settings(
        mode="offline",
        silent=True,
        save_code=False,
        disable_git=True,
        x_disable_meta=True,
        x_stats_sampling_interval=1.0,
    )
    run = wandb.init(project="test", name="night", dir=str(folder), settings=settings)
    train(lambda values, step: run.log({**values, "text": "x", "nested": {"norm": 2.0}}, step=step))
    time.sleep(2.5)
    run.finish()
    wandb.teardown()  # until then the file may be without its end
    (file,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    shutil.copy(file, folder / "run-night.wandb")
    shutil.rmtree(folder / "wandb")


def wandb_jsonl(folder):
    """With W&B 0.9.7, which needs what `collections` had before Python 3.10, in each of its processes (sitecustomize)."""
    os.environ.update(WANDB_MODE="dryrun", WANDB_DIR=str(folder), WANDB_SILENT="true")
    import wandb

    wandb.init(project="test", name="night")
    # A row that is logged with `step=` gets the time of the next one.
    train(lambda values, step: wandb.log({**values, "global_step": step, "text": "x", "nested": {"norm": 2.0}}))
    time.sleep(2.5)
    wandb.join()
    (run,) = folder.glob("wandb/dryrun-*")
    (kept := folder / run.name).mkdir()
    for name in ("wandb-history.jsonl", "wandb-events.jsonl"):
        shutil.copy(run / name, kept)
    (kept / "wandb-metadata.json").write_text('{"name": "night", "mode": "dryrun"}\n')
    shutil.rmtree(folder / "wandb")


def mlflow_database(folder):
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("test", f"file://{folder}/artifacts"))
    with mlflow.start_run(run_name="night"):
        train(lambda values, step: mlflow.log_metrics(values, step=step))
        mlflow.log_metric("system/gpu_0_utilization_percentage", 50.0, step=0)  # as its system metrics are called
    with mlflow.start_run(run_name="short"):
        mlflow.log_metric("x", 1.0)
    keep_only(folder / "mlflow.db", "runs", "metrics")
    shutil.rmtree(folder / "artifacts", ignore_errors=True)


def mlflow_files(folder):
    import mlflow

    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    mlflow.set_tracking_uri(f"file://{folder}/mlruns")
    mlflow.set_experiment("test")
    with mlflow.start_run(run_name="night"):
        train(lambda values, step: mlflow.log_metrics(values, step=step))
    shutil.rmtree(folder / "mlruns/.trash", ignore_errors=True)
    for run in folder.glob("mlruns/*/*/metrics"):
        for other in ("artifacts", "tags", "params"):
            shutil.rmtree(run.parent / other, ignore_errors=True)


def trackio(folder):
    os.environ["TRACKIO_DIR"] = str(folder)
    import trackio

    trackio.init(project="project", name="night", auto_log_cpu=False, auto_log_gpu=False)
    train(lambda values, step: trackio.log(values, step=step))
    trackio.log_system({"gpu/0/utilization": 50.0, "cpu": 3.0})
    trackio.finish()
    keep_only(folder / "project.db", "metrics", "system_metrics")
    for path in folder.iterdir():
        if path.name != "project.db":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def keep_only(database, *tables):
    """Without the other tables, which are empty here and most of the file."""
    with sqlite3.connect(database) as store:
        store.execute("pragma foreign_keys = off")
        store.execute("pragma journal_mode = delete")
        names = [name for (name,) in store.execute("select name from sqlite_schema where type = 'table'")]
        for name in names:
            if name not in tables and not name.startswith("sqlite_"):
                store.execute(f'drop table "{name}"')
    with sqlite3.connect(database, isolation_level=None) as store:
        store.execute("vacuum")
    store.close()


def sqlite(folder):
    """Small pages, rows longer than pages, a tree of several levels, and rows that are in the journal alone."""
    path = folder / "own.db"
    store = sqlite3.connect(path, isolation_level=None)
    store.execute("pragma page_size = 512")
    store.execute("pragma journal_mode = wal")
    store.execute('create table t (id integer primary key, "number" real, text text, constraint c check (id > 0))')
    store.execute("begin")
    for row in range(1, 151):
        store.execute(
            "insert into t (number, text) values (?, ?)", (row / 2, "x" * (1000 if row % 20 == 0 else row % 50))
        )
    store.execute("commit")
    store.execute("pragma wal_checkpoint(truncate)")
    store.execute("pragma wal_autocheckpoint = 0")
    store.execute("alter table t add column late integer")
    store.execute("insert into t (number, text, late) values (-1.5, 'in the journal', -7)")
    for name in ("own.db", "own.db-wal"):
        shutil.copy(folder / name, folder / f"journal-{name}")
    store.close()
    for name in ("own.db", "own.db-wal"):
        if (folder / f"journal-{name}").exists():
            shutil.move(folder / f"journal-{name}", folder / name)
    (folder / "own.db-shm").unlink(missing_ok=True)


if __name__ == "__main__":
    target = Path(sys.argv[1]).resolve()
    known = (tensorboard, wandb, wandb_jsonl, mlflow_database, mlflow_files, trackio, sqlite)
    for make in known:
        if sys.argv[2:] and make.__name__ not in sys.argv[2:]:
            continue
        folder = target / make.__name__
        folder.mkdir(parents=True)
        # A process of its own: MLflow has one store for each.
        if os.fork() == 0:
            make(folder)
            sys.stdout.flush()
            os._exit(0)
        os.wait()

"""Ultralytics: its command `yolo train`, on the two pictures in its wheel."""

import shutil
from pathlib import Path

import counting
from ultralytics.utils import ASSETS

counting.start()
for part in ("train", "val"):
    Path(f"data/images/{part}").mkdir(parents=True)
    Path(f"data/labels/{part}").mkdir(parents=True)
    for picture in ASSETS.glob("*.jpg"):
        shutil.copy(picture, f"data/images/{part}/{picture.name}")
        Path(f"data/labels/{part}/{picture.stem}.txt").write_text("0 0.5 0.5 0.6 0.6\n")
Path("data.yaml").write_text(f"path: {Path('data').absolute()}\ntrain: images/train\nval: images/val\nnames: [thing]\n")
counting.console_script(
    "yolo",
    *["train", "model=yolov8n.yaml", "data=data.yaml", "epochs=3", "imgsz=64", "batch=1", "workers=0", "device=cpu"],
    *["plots=False", "project=out", "amp=False", "nbs=1", "seed=0", "save=True"],
)

"""TRL: its program `trl.scripts.sft`, which `trl sft` starts in a process of its own, on a tiny model."""

import json
from pathlib import Path

import counting
import tiny_language_model

counting.start()
tiny_language_model.save(Path("model"))
Path("data").mkdir()
rows = [json.dumps({"text": sentence}) for sentence in tiny_language_model.SENTENCES]
Path("data/train.jsonl").write_text("\n".join(rows))
counting.module(
    "trl.scripts.sft",
    *["--model_name_or_path", "./model", "--dataset_name", "./data", "--output_dir", "out-folder"],
    *["--num_train_epochs", "2", "--per_device_train_batch_size", "4", "--gradient_accumulation_steps", "2"],
    *["--use_cpu", "--bf16", "false", "--report_to", "none", "--logging_steps", "4", "--seed", "0"],
)

"""Stanza: its program `stanza.models.charlm`, a character language model, on its own source."""

from pathlib import Path

import counting
import stanza

counting.start()
text = (Path(stanza.__file__).parent / "models/charlm.py").read_text()
Path("train.txt").write_text(text[:8000])
Path("dev.txt").write_text(text[8000:10000])
counting.module(
    "stanza.models.charlm",
    *["--train_file", "train.txt", "--eval_file", "dev.txt", "--shorthand", "en_test", "--epochs", "3"],
    *["--char_hidden_dim", "64", "--batch_size", "4", "--bptt_size", "50", "--cpu", "--cutoff", "1"],
)

"""Chemprop: its command `chemprop train`, on made-up alcohols, amines and acids."""

from pathlib import Path

import counting

counting.start()
smiles = ["C" * n + end for n in range(1, 21) for end in ("O", "N", "C(=O)O", "c1ccccc1", "Cl")]
rows = [f"{s},{len(s) * 0.1:.1f}" for s in smiles]
Path("data.csv").write_text("\n".join(["smiles,y", *rows]))
counting.console_script(
    "chemprop",
    *["train", "--data-path", "data.csv", "--output-dir", "out-folder", "--epochs", "3", "--batch-size", "16"],
    *["--num-workers", "0", "--pytorch-seed", "0", "--accelerator", "cpu"],
)

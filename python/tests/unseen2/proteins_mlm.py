"""Masked language model of protein-like sequences with transformers' Trainer: small RoBERTa from scratch."""
import random
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import RobertaConfig, RobertaForMaskedLM, Trainer, TrainingArguments, set_seed

ACIDS, PAD, MASK, FIRST, LENGTH = 20, 1, 2, 3, 48


class Proteins(Dataset):
    """Sequences from a few motifs, so that masked letters can be guessed from their neighbours."""

    def __init__(self, count, seed):
        chooser = random.Random(0)
        motifs = [[chooser.randrange(ACIDS) + FIRST for _ in range(6)] for _ in range(40)]
        chooser.seed(seed)
        self.rows = torch.tensor([sum(chooser.choices(motifs, k=LENGTH // 6), []) for _ in range(count)])

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def mask(rows):
    """Hides 15 % of the letters of a batch."""
    ids = torch.stack(rows)
    labels = ids.clone()
    hidden = torch.rand(ids.shape) < 0.15
    labels[~hidden] = -100
    ids[hidden] = MASK
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


def main():
    set_seed(15)
    config = RobertaConfig(
        vocab_size=FIRST + ACIDS, hidden_size=96, num_hidden_layers=3, num_attention_heads=4, intermediate_size=256,
        max_position_embeddings=LENGTH + 4, pad_token_id=PAD, bos_token_id=0, eos_token_id=0,
    )
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="proteins-"),
        max_steps=720,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=64,
        learning_rate=1e-3,
        warmup_steps=40,
        lr_scheduler_type="cosine",
        logging_steps=25,
        eval_strategy="steps",
        eval_steps=240,
        save_strategy="steps",
        save_steps=360,
        save_total_limit=2,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=15,
    )
    trainer = Trainer(
        RobertaForMaskedLM(config), arguments, data_collator=mask,
        train_dataset=Proteins(8000, 1), eval_dataset=Proteins(320, 2),
    )
    trainer.train()
    print(trainer.evaluate())


if __name__ == "__main__":
    main()

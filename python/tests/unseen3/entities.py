"""Names of drugs in prescriptions: token classification with transformers' Trainer."""
import os
import tempfile
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (BertConfig, BertForTokenClassification, DataCollatorForTokenClassification,
                          PreTrainedTokenizerFast, Trainer, TrainingArguments)
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

WORDS = 3000


class Prescriptions(Dataset):
    """Words of the higher numbers are drugs, and the word behind a drug is its dose."""

    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.items = []
        for _ in range(count):
            ids = rng.integers(5, WORDS, rng.integers(44, 64))
            labels = np.where(ids > 2600, 1, 0)
            labels[1:] = np.where((labels[:-1] == 1) & (labels[1:] == 0), 2, labels[1:])
            self.items.append({"input_ids": ids.tolist(), "attention_mask": [1] * len(ids),
                               "labels": labels.tolist()})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def tokenizer():
    words = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
    words.update({f"w{i}": i for i in range(5, WORDS)})
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel(words, "[UNK]")), pad_token="[PAD]")


def accuracy(result):
    guess = result.predictions.argmax(-1)
    keep = result.label_ids != -100
    return {"accuracy": float((guess == result.label_ids)[keep].mean())}


def main():
    torch.manual_seed(0)
    config = BertConfig(vocab_size=WORDS, hidden_size=128, num_hidden_layers=3, num_attention_heads=4,
                        intermediate_size=384, max_position_embeddings=128, num_labels=3)
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            output_dir=folder, num_train_epochs=4, per_device_train_batch_size=24, per_device_eval_batch_size=64,
            learning_rate=5e-4, warmup_steps=20, weight_decay=0.01, logging_steps=50, eval_strategy="epoch",
            save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True, seed=0)
        trainer = Trainer(model=BertForTokenClassification(config), args=settings,
                          train_dataset=Prescriptions(1440, 1), eval_dataset=Prescriptions(128, 2),
                          data_collator=DataCollatorForTokenClassification(tokenizer()),
                          compute_metrics=accuracy)
        began = time.time()
        trainer.train()
        print(f"trained in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()

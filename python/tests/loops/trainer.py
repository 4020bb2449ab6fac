"""Hugging Face's Trainer on a small BERT made from nothing, with evaluation and a checkpoint."""

import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    logging,
)


class Words(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, index):
        words = torch.tensor([(index * k) % 50 for k in range(1, 13)])
        return {"input_ids": words, "attention_mask": torch.ones_like(words), "labels": torch.tensor(index % 2)}


class Losses(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            print(float(logs["loss"]).hex())


torch.manual_seed(0)
logging.disable_progress_bar()  # it shows how long things take
torch.set_num_threads(1)
config = BertConfig(
    vocab_size=50,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=16,
)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=16,
        num_train_epochs=2,
        logging_steps=1,
        eval_strategy="epoch",
        save_strategy="epoch",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        log_level="error",
    )
    trainer = Trainer(
        BertForSequenceClassification(config),
        arguments,
        train_dataset=Words(),
        eval_dataset=Words(),
        callbacks=[Losses()],
    )
    trainer.remove_callback(PrinterCallback)  # it prints how long things took
    trainer.train()

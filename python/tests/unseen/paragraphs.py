"""Masked language model with transformers' Trainer."""
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments, set_seed

set_seed(17)
torch.set_num_threads(1)


class Paragraphs(Dataset):
    def __init__(self, n, vocabulary=4000, length=48):
        self.ids = torch.randint(5, vocabulary, (n, length))
        self.masked = torch.rand(n, length) < 0.15

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        labels = torch.where(self.masked[i], self.ids[i], -100)
        return {"input_ids": self.ids[i].masked_fill(self.masked[i], 4), "labels": labels}


config = BertConfig(vocab_size=4000, hidden_size=96, num_hidden_layers=2, num_attention_heads=4, intermediate_size=192, max_position_embeddings=64)
model = BertForMaskedLM(config)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder, max_steps=380, per_device_train_batch_size=8, learning_rate=5e-4, logging_steps=50,
        save_strategy="steps", save_steps=3, save_total_limit=2, report_to="none", use_cpu=True, disable_tqdm=True, seed=17,
    )
    Trainer(model=model, args=arguments, train_dataset=Paragraphs(3000)).train()

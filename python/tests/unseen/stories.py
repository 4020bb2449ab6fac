"""Causal language model with transformers' Trainer and packed stories."""
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

set_seed(137)
torch.set_num_threads(1)


class Packed(Dataset):
    def __init__(self, n, length=48):
        self.tokens = torch.randint(0, 1200, (n * length,))
        self.length = length

    def __len__(self):
        return len(self.tokens) // self.length

    def __getitem__(self, i):
        ids = self.tokens[i * self.length:(i + 1) * self.length]
        return {"input_ids": ids, "labels": ids}


model = GPT2LMHeadModel(GPT2Config(vocab_size=1200, n_positions=48, n_embd=96, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0))
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder, max_steps=850, per_device_train_batch_size=8, learning_rate=3e-4, lr_scheduler_type="cosine", warmup_steps=40,
        logging_steps=60, save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True, seed=137,
    )
    Trainer(model=model, args=arguments, train_dataset=Packed(2400)).train()

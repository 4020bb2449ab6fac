"""transformers: its `Trainer`, with a tiny GPT-2 made in memory."""

import counting
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

counting.start()
model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2))
rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 64, (64, 16))]
arguments = TrainingArguments(
    "out-folder",
    num_train_epochs=2,
    per_device_train_batch_size=4,
    gradient_accumulation_steps=2,
    eval_strategy="epoch",
    use_cpu=True,
    disable_tqdm=True,
    report_to="none",
)
trainer = Trainer(model, arguments, train_dataset=rows, eval_dataset=rows[:16])
trainer.train()
print([entry["loss"] if "loss" in entry else entry.get("eval_loss") for entry in trainer.state.log_history])

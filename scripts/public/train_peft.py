"""PEFT: a LoRA adapter on a tiny model, as in its quick tour, with transformers' `Trainer`."""

import counting
import tiny_language_model
import torch
from peft import LoraConfig, TaskType, get_peft_model
from transformers import Trainer, TrainingArguments

counting.start()
adapter = LoraConfig(task_type=TaskType.CAUSAL_LM, r=4, target_modules=["q_proj", "v_proj"])
model = get_peft_model(tiny_language_model.model(), adapter)
rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 64, (64, 16))]
arguments = TrainingArguments(
    "out-folder", num_train_epochs=2, per_device_train_batch_size=4, use_cpu=True, disable_tqdm=True, report_to="none"
)
trainer = Trainer(model, arguments, train_dataset=rows)
print(trainer.train().training_loss)

"""Fine-tunes a small BERT on intents with transformers' Trainer."""
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments, set_seed

INTENTS, VOCABULARY, LENGTH = 12, 3500, 32


class Utterances(Dataset):
    """Every intent has some words of its own."""

    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(INTENTS, (count,), generator=generator)
        self.ids = torch.randint(INTENTS * 10 + 5, VOCABULARY, (count, LENGTH), generator=generator)
        own = self.labels[:, None] * 10 + 5 + torch.randint(10, (count, LENGTH), generator=generator)
        self.ids = torch.where(torch.rand(count, LENGTH, generator=generator) < 0.2, own, self.ids)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": torch.ones(LENGTH, dtype=torch.long), "labels": self.labels[i]}


class NeighbourMonitor(TrainerCallback):
    """Follows how the nearest words of every word change during fine-tuning."""

    def __init__(self, every, nearest=20):
        self.every, self.nearest = every, nearest
        self.before, self.kept = {}, []

    def on_step_end(self, args, state, control, model=None, **kwargs):
        if state.global_step % self.every:
            return
        words = torch.nn.functional.normalize(model.get_input_embeddings().weight.detach(), dim=1)
        same = 0
        for word in range(len(words)):
            order = (words @ words[word]).argsort(descending=True)
            nearest = set(order[1 : self.nearest + 1].tolist())
            same += len(nearest & self.before.get(word, nearest))
            self.before[word] = nearest
        self.kept.append((state.global_step, same / len(words) / self.nearest))


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main():
    set_seed(8)
    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=160, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=480, max_position_embeddings=64, num_labels=INTENTS,
    )
    model = BertForSequenceClassification(config)
    folder = tempfile.mkdtemp(prefix="finetune-")
    arguments = TrainingArguments(
        output_dir=folder, max_steps=400, per_device_train_batch_size=16, per_device_eval_batch_size=64,
        learning_rate=3e-4, logging_steps=50, eval_strategy="steps", eval_steps=200, save_steps=400,
        save_total_limit=1, report_to=[], disable_tqdm=True, use_cpu=True, seed=8,
    )
    monitor = NeighbourMonitor(every=40)
    trainer = Trainer(
        model, arguments, train_dataset=Utterances(6000, 1), eval_dataset=Utterances(400, 2),
        compute_metrics=accuracy, callbacks=[monitor],
    )
    trainer.train()
    step, kept = monitor.kept[-1]
    print(f"step {step} nearest words kept {kept:.3f}")


if __name__ == "__main__":
    main()

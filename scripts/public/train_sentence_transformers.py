"""sentence-transformers: its `SentenceTransformerTrainer`, as in its documentation, on a tiny model."""

from pathlib import Path

import counting
import tiny_language_model
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    losses,
    models,
)

counting.start()
tiny_language_model.save(Path("model"))
word = models.Transformer("./model")
model = SentenceTransformer(modules=[word, models.Pooling(32)], device="cpu")
pairs = Dataset.from_dict(
    {"anchor": tiny_language_model.SENTENCES, "positive": list(reversed(tiny_language_model.SENTENCES))}
)
arguments = SentenceTransformerTrainingArguments(
    "out-folder", num_train_epochs=2, per_device_train_batch_size=8, use_cpu=True, disable_tqdm=True, report_to="none"
)
trainer = SentenceTransformerTrainer(
    model, arguments, train_dataset=pairs, loss=losses.MultipleNegativesRankingLoss(model)
)
print(trainer.train().training_loss)

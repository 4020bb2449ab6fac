"""Sentiment of long product reviews: word pieces and a small transformer encoder."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader

random.seed(7)
torch.manual_seed(7)
LENGTH = 64
SYLLABLES = ["ka", "lo", "mi", "ter", "vun", "sho", "pra", "eld", "ing", "ous", "ber", "tan", "qui", "zor", "fen"]
GOOD = ["splendid", "lovely", "sturdy", "brilliant", "charming"]
BAD = ["flimsy", "dreadful", "noisy", "broken", "tedious"]
PIECES = SYLLABLES + [a + b for a in SYLLABLES for b in SYLLABLES] + GOOD + BAD
LEXICON = ["".join(random.choices(SYLLABLES, k=random.randint(1, 5))) for _ in range(20_000)]
VOCABULARY = {piece: i + 2 for i, piece in enumerate(PIECES)}  # 0: padding, 1: unknown


def make_review(label):
    words = random.choices(LEXICON, k=random.randint(600, 1400))
    for _ in range(12):
        words[random.randrange(40)] = random.choice(GOOD if label else BAD)
    return " ".join(words), label


def word_pieces(text):
    """The longest piece first, as WordPiece does."""
    ids = []
    for word in text.lower().split():
        start = 0
        while start < len(word):
            end = min(len(word), start + 10)
            while end > start and word[start:end] not in VOCABULARY:
                end -= 1
            ids.append(VOCABULARY.get(word[start:end], 1))
            start = max(end, start + 1)
    return ids


class Classifier(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embed = nn.Embedding(len(VOCABULARY) + 2, width, padding_idx=0)
        self.place = nn.Parameter(torch.randn(LENGTH, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 128, batch_first=True, dropout=0.1)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, ids):
        hidden = self.encoder(self.embed(ids) + self.place)
        return self.head(hidden.mean(1))


def encode(texts):
    ids = torch.zeros(len(texts), LENGTH, dtype=torch.long)
    for row, text in enumerate(texts):
        tokens = word_pieces(text)[:LENGTH]
        ids[row, : len(tokens)] = torch.tensor(tokens)
    return ids


def main():
    reviews = [make_review(i % 2) for i in range(1760)]
    train, test = reviews[:1600], reviews[1600:]
    loader = DataLoader(train, batch_size=32, shuffle=True, drop_last=True)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(8):
        model.train()
        for step, (texts, labels) in enumerate(loader):
            ids = encode(texts)
            optimizer.zero_grad()
            loss = criterion(model(ids), labels)
            loss.backward()
            optimizer.step()
            if step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
        model.eval()
        with torch.no_grad():
            logits = model(encode([text for text, _ in test]))
            right = (logits.argmax(1) == torch.tensor([label for _, label in test])).float().mean()
        print(f"epoch {epoch} test accuracy {right:.3f}")


if __name__ == "__main__":
    main()

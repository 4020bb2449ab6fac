"""Character-level caption decoder conditioned on image features."""
import random
import string

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(7)
random.seed(7)
torch.set_num_threads(1)

ALPHABET = "_" + string.ascii_letters + string.digits + " .,!?'-"
WORDS = ["".join(random.choices(string.ascii_lowercase, k=random.randint(2, 9))) for _ in range(400)]


class Captions(Dataset):
    def __init__(self, n):
        self.features = torch.randn(n, 128)
        self.texts = [" ".join(random.choices(WORDS, k=random.randint(7, 10)))[:60] for _ in range(n)]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.features[i], self.texts[i]


def pad_texts(batch):
    longest = max(len(text) for _, text in batch)
    tokens = torch.zeros(len(batch), longest, dtype=torch.long)
    weight, upper = torch.zeros(len(batch), longest), torch.zeros(len(batch), longest)
    for row, (_, text) in enumerate(batch):
        for column, char in enumerate(text):
            tokens[row, column] = ALPHABET.index(char)
            weight[row, column] = 0.5 if char == " " else 1.0
            upper[row, column] = char.isupper()
    features = torch.stack([feature for feature, _ in batch])
    return features, tokens, weight, upper


class Decoder(nn.Module):
    def __init__(self, dim=72):
        super().__init__()
        self.start = nn.Linear(128, dim)
        self.embed = nn.Embedding(len(ALPHABET), dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, len(ALPHABET))

    def forward(self, features, tokens):
        h = torch.tanh(self.start(features))[None]
        states, _ = self.rnn(self.embed(tokens), h)
        return self.out(states)


def main():
    loader = DataLoader(Captions(32 * 100), batch_size=32, shuffle=True, collate_fn=pad_texts)
    model = Decoder()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(8):
        total = 0.0
        for features, tokens, weight, upper in loader:
            logits = model(features, tokens[:, :-1])
            each = nn.functional.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], ignore_index=0, reduction="none")
            loss = (each * (weight + upper)[:, 1:]).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.3f}", flush=True)


if __name__ == "__main__":
    main()

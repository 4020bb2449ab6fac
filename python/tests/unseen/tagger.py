"""Part-of-speech tags with a BiLSTM."""
import torch
from torch import nn

torch.manual_seed(29)
torch.set_num_threads(1)
TAGS = 17


class Tagger(nn.Module):
    def __init__(self, words=6000, dim=48):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.rnn = nn.LSTM(dim, 48, num_layers=2, bidirectional=True, batch_first=True, dropout=0.2)
        self.tags = nn.Linear(96, TAGS)

    def forward(self, words):
        return self.tags(self.rnn(self.embed(words))[0])


class Confusion:
    def __init__(self):
        self.table = torch.zeros(TAGS, TAGS, dtype=torch.long)

    def update(self, scores, gold):
        guess = scores.argmax(-1)
        for i in range(gold.shape[0]):
            for j in range(gold.shape[1]):
                self.table[gold[i, j].item(), guess[i, j].item()] += 1

    def accuracy(self):
        return (self.table.diag().sum() / self.table.sum()).item()


def batches(n):
    g = torch.Generator().manual_seed(1)
    for _ in range(n):
        words = torch.randint(0, 6000, (24, 40), generator=g)
        yield words, (words * 7) % TAGS


model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
for epoch in range(6):
    confusion = Confusion()
    for words, gold in batches(120):
        optimizer.zero_grad()
        scores = model(words)
        loss = nn.functional.cross_entropy(scores.reshape(-1, TAGS), gold.reshape(-1))
        loss.backward()
        optimizer.step()
        confusion.update(scores.detach(), gold)
    print(f"epoch {epoch} loss {loss.item():.3f} accuracy {confusion.accuracy():.3f}", flush=True)

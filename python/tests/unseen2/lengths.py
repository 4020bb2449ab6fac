"""Tags the events of user sessions: a compiled bidirectional tagger; each batch is padded to its longest session."""
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(21)
EVENTS, TAGS = 300, 9


class Sessions(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        lengths = (10 + 110 * torch.rand(count, generator=generator) ** 2).long()
        self.events = [torch.randint(1, EVENTS, (n,), generator=generator) for n in lengths.tolist()]

    def __len__(self):
        return len(self.events)

    def __getitem__(self, i):
        events = self.events[i]
        return events, (events + events.roll(1)) % TAGS


def collate(items):
    events, tags = zip(*items)
    return pad_sequence(events, batch_first=True), pad_sequence(tags, batch_first=True, padding_value=-100)


class Tagger(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embed = nn.Embedding(EVENTS, width, padding_idx=0)
        self.convolutions = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(3))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.head = nn.Linear(width, TAGS)

    def forward(self, events):
        x = self.embed(events)
        for convolution, norm in zip(self.convolutions, self.norms):
            x = x + nn.functional.gelu(convolution(norm(x).transpose(1, 2)).transpose(1, 2))
        return self.head(x)


def main():
    train = DataLoader(Sessions(2400, 1), batch_size=8, shuffle=True, collate_fn=collate, drop_last=True)
    test = DataLoader(Sessions(240, 2), batch_size=48, collate_fn=collate)
    model = Tagger()
    compiled = torch.compile(model, backend="aot_eager", dynamic=False)  # no compiler on the nodes
    torch._dynamo.config.recompile_limit = 256
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=-100)
    for epoch in range(2):
        model.train()
        for step, (events, tags) in enumerate(train):
            loss = criterion(compiled(events).flatten(0, 1), tags.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 40 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f}", flush=True)
        model.eval()
        with torch.no_grad():
            pairs = [(model(events).argmax(-1)[tags >= 0], tags[tags >= 0]) for events, tags in test]
        right = sum((a == b).sum().item() for a, b in pairs) / sum(len(b) for _, b in pairs)
        print(f"epoch {epoch} accuracy {right:.3f}", flush=True)


if __name__ == "__main__":
    main()

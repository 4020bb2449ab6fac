"""Language identification of sentences on two ranks: torchrun --nproc-per-node 2 shards.py"""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

LANGUAGES, LETTERS = 6, 64


def make_sentences(count):
    """Sentences as they lie in the files: sorted by length, so that little is padded."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(20, 110, (count,), generator=generator).sort()[0]
    habits = torch.softmax(torch.randn(LANGUAGES, LETTERS - 1, generator=generator), 1)
    sentences = []
    for n in lengths.tolist():
        language = int(torch.randint(LANGUAGES, (1,), generator=generator))
        letters = torch.multinomial(habits[language], n, replacement=True, generator=generator) + 1
        sentences.append((letters, language))
    return sentences


class Shard(Dataset):
    """The part of the sentences that a rank reads."""

    def __init__(self, sentences, rank, ranks):
        part = len(sentences) // ranks
        self.sentences = sentences[rank * part : (rank + 1) * part]

    def __len__(self):
        return len(self.sentences)

    def __getitem__(self, i):
        return self.sentences[i]


def collate(items):
    letters, languages = zip(*items)
    return pad_sequence(letters, batch_first=True), torch.tensor(languages)


class Identifier(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.embed = nn.Embedding(LETTERS, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, LANGUAGES)

    def forward(self, letters):
        filled = (letters > 0).unsqueeze(-1)
        hidden = self.encoder(self.embed(letters)) * filled
        return self.head(hidden.sum(1) / filled.sum(1))


def main():
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    sentences = make_sentences(9600)
    loader = DataLoader(Shard(sentences, rank, ranks), batch_size=32, shuffle=True, collate_fn=collate, drop_last=True)
    model = DistributedDataParallel(Identifier())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        right = seen = 0
        for step, (letters, languages) in enumerate(loader):
            logits = model(letters)
            loss = nn.functional.cross_entropy(logits, languages)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            right += (logits.argmax(1) == languages).sum().item()
            seen += len(languages)
            if rank == 0 and step % 50 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f} accuracy {right / seen:.3f}", flush=True)
    if rank == 0:
        torch.save(model.module.state_dict(), "/tmp/shards-model.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

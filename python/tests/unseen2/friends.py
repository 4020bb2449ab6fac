"""Predicts links of a social network: GCN encoder over the whole graph, negative samples, in PyTorch Geometric."""
import torch
from torch_geometric import seed_everything
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import RandomLinkSplit
from torch_geometric.utils import coalesce, remove_self_loops, to_undirected

PEOPLE, GROUPS, EPOCHS = 6000, 40, 360


def make_network():
    group = torch.randint(GROUPS, (PEOPLE,))
    order = group.argsort()
    starts = torch.searchsorted(group[order], torch.arange(GROUPS + 1))
    source = torch.randint(PEOPLE, (50_000,))
    low, high = starts[group[source]], starts[group[source] + 1]
    inside = order[low + (torch.rand(len(source)) * (high - low)).long()]
    target = torch.where(torch.rand(len(source)) < 0.85, inside, torch.randint(PEOPLE, (len(source),)))
    edges = coalesce(to_undirected(remove_self_loops(torch.stack([source, target]))[0]))
    x = torch.nn.functional.one_hot(group % 10, 64).float() + torch.randn(PEOPLE, 64)
    return Data(x=x, edge_index=edges)


class Encoder(torch.nn.Module):
    def __init__(self, inputs, hidden=64, outputs=32):
        super().__init__()
        self.conv1 = GCNConv(inputs, hidden)
        self.conv2 = GCNConv(hidden, outputs)
        self.dropout = torch.nn.Dropout(0.2)

    def forward(self, x, edges):
        return self.conv2(self.dropout(self.conv1(x, edges).relu()), edges)


def decode(z, pairs):
    return (z[pairs[0]] * z[pairs[1]]).sum(1)


def train(model, data, optimizer):
    model.train()
    optimizer.zero_grad()
    z = model(data.x, data.edge_index)
    negatives = torch.randint(PEOPLE, (2, data.edge_label_index.shape[1]))  # hardly any is a link
    pairs = torch.cat([data.edge_label_index, negatives], 1)
    labels = torch.cat([data.edge_label, torch.zeros(negatives.shape[1])])
    loss = torch.nn.functional.binary_cross_entropy_with_logits(decode(z, pairs), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def test(model, data):
    """The area under the curve, by ranks."""
    model.eval()
    scores = decode(model(data.x, data.edge_index), data.edge_label_index)
    ranks = torch.empty(len(scores))
    ranks[scores.argsort()] = torch.arange(1.0, len(scores) + 1)
    positive = data.edge_label == 1
    p, n = positive.sum(), (~positive).sum()
    return float((ranks[positive].sum() - p * (p + 1) / 2) / (p * n))


def main():
    seed_everything(2)
    split = RandomLinkSplit(num_val=0.05, num_test=0.1, is_undirected=True, add_negative_train_samples=False)
    train_data, valid_data, test_data = split(make_network())
    model = Encoder(64)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    best = final = 0.0
    for epoch in range(1, EPOCHS + 1):
        loss = train(model, train_data, optimizer)
        if epoch % 20 == 0:
            valid = test(model, valid_data)
            if valid > best:
                best, final = valid, test(model, test_data)
            print(f"epoch {epoch} loss {loss:.4f} validation {valid:.4f}", flush=True)
    print(f"best {best:.4f} test {final:.4f}")


if __name__ == "__main__":
    main()

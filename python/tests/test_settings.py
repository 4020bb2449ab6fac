"""What a session says of how a training is set up."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from programs import GNNTOP, recorded, report

pytestmark = pytest.mark.skipif(not GNNTOP.exists(), reason=f"no {GNNTOP}: cargo build")

PROGRAM = """
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(1))
model(torch.randn(1, 3, 8, 8))
if sys.argv[1] == "last":
    model.to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for (x,) in DataLoader(TensorDataset(torch.randn(80, 3, 8, 8)), batch_size=4):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
"""


OF_ITEMS = """
import torch
from gnntop.hooks.training_set import _content
from torch_geometric.data import Data

edges = torch.tensor([[0, 1], [1, 2]])
for make in (lambda x: Data(x=x, edge_index=edges), lambda x: {"x": x, "name": "a"}, lambda x: (x, 1)):
    same, again, other = ([make(torch.full((3, 4), value))] * 9 for value in (1.0, 1.0, 2.0))
    assert _content(same) is not None and _content(same) == _content(again) != _content(other)
assert _content([{"x": object()}]) is None
"""


def test_some_of_the_data_is_read_of_graphs_and_of_dicts(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(OF_ITEMS)
    ran, _ = recorded([sys.executable, str(script)], tmp_path)
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(("order", "words"), [("last", "channels_last on"), ("first", "channels_last off")])
def test_the_order_of_images_and_the_loaders_workers_are_facts(order: str, words: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    ran, recording = recorded([sys.executable, str(script), order], tmp_path)
    assert ran.code == 0, ran.err
    facts = report(recording)["session"]["facts"]
    assert words in facts["settings"].split(", "), facts
    assert facts["loader workers"] == "0"
    assert facts["model parameters"] == "float32"


PARAMETERS = """
import torch
from torch import nn
from gnntop import _native
from gnntop.hooks import model_parameters, roots

said = []
_native.parameters = lambda *of: said.append(of)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(30, 4), nn.Linear(4, 30, bias=False)
        self.out.weight = self.words.weight


frozen = nn.Embedding.from_pretrained(torch.zeros(30, 4))
for model in (
    nn.Sequential(nn.Embedding(30, 4), nn.Linear(4, 10, bias=False)),
    nn.Sequential(nn.EmbeddingBag(10, 4), nn.Linear(4, 30, bias=False)).double(),
    nn.Sequential(nn.Embedding(30, 4, sparse=True), nn.Linear(4, 10)),
    nn.Sequential(frozen, nn.Linear(4, 10)),
    Tied(),
    nn.ReLU(),
):
    roots.model = lambda model=model: model
    model_parameters.publish(torch)
    said.append(None)
none = [("float32", 0), None]
expected = [("float32", 75), None, ("float64", 25), None, *none, *none, *none, None]
assert said == expected, said
"""


def test_what_the_models_parameters_are(tmp_path: Path) -> None:
    script = tmp_path / "parameters.py"
    script.write_text(PARAMETERS)
    ran, _ = recorded([sys.executable, str(script)], tmp_path)
    assert ran.code == 0, ran.err

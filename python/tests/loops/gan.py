"""Two networks with an optimizer each, in turn: one turn of both is a step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
loader = DataLoader(TensorDataset(torch.randn(800, 8)), batch_size=32)
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 8))
critic = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
of_generator = torch.optim.Adam(generator.parameters(), lr=1e-4)
of_critic = torch.optim.Adam(critic.parameters(), lr=1e-4)
judge = nn.BCEWithLogitsLoss()
for (real,) in loader:
    noise = torch.randn(len(real), 4)
    of_critic.zero_grad()
    with torch.no_grad():
        fake = generator(noise)
    ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
    of_both = judge(critic(real), ones) + judge(critic(fake), zeros)
    of_both.backward()
    of_critic.step()
    of_generator.zero_grad()
    deceived = judge(critic(generator(noise)), ones)
    deceived.backward()
    of_generator.step()
    print(of_both.item().hex(), deceived.item().hex())

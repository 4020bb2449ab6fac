"""Actor-critic on a vectorised bandit with context, and a thread that follows the rewards."""
import collections
import threading

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(23)
torch.set_num_threads(1)
ARMS, CONTEXT, ENVS, HORIZON = 8, 12, 64, 8


class Monitor(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.rewards = collections.deque(maxlen=4000)
        self.summary = {}
        self.running = True

    def refresh(self):
        values = sorted(list(self.rewards))
        mean = sum(values) / max(1, len(values))
        spread = sum((v - mean) ** 2 for v in values) ** 0.5
        buckets = collections.Counter(round(v, 1) for v in values)
        self.summary = {"mean": mean, "spread": spread, "mode": buckets.most_common(1)}

    def run(self):
        while self.running:
            self.refresh()


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(CONTEXT, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh())
        self.pi, self.v = nn.Linear(128, ARMS), nn.Linear(128, 1)

    def forward(self, x):
        h = self.body(x)
        return Categorical(logits=self.pi(h)), self.v(h)[:, 0]


true = torch.randn(CONTEXT, ARMS) / CONTEXT ** 0.5
policy = Policy()
optimizer = torch.optim.RMSprop(policy.parameters(), 7e-4)
monitor = Monitor()
monitor.start()
for update in range(700):
    terms = []
    for _ in range(HORIZON):
        context = torch.randn(ENVS, CONTEXT)
        dist, value = policy(context)
        action = dist.sample()
        reward = (context @ true).gather(1, action[:, None])[:, 0]
        advantage = reward - value
        terms.append(-(dist.log_prob(action) * advantage.detach()).mean() + advantage.pow(2).mean() - 0.01 * dist.entropy().mean())
        monitor.rewards.extend(reward.tolist())
    loss = torch.stack(terms).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 100 == 0:
        print(update, round(loss.item(), 4), flush=True)
monitor.running = False

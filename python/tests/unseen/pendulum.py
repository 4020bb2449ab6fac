"""Q-learning of a pendulum swing-up, with a replay memory and a target network."""
import math
import random

import torch
from torch import nn

random.seed(139)
torch.manual_seed(139)
torch.set_num_threads(1)
TORQUES = (-2.0, -0.7, 0.0, 0.7, 2.0)


class Pendulum:
    def reset(self):
        self.angle, self.speed, self.ticks = random.uniform(-math.pi, math.pi), 0.0, 0
        return self.observe()

    def observe(self):
        return [math.cos(self.angle), math.sin(self.angle), self.speed]

    def step(self, torque):
        cost = (self.angle % (2 * math.pi) - math.pi) ** 2 + 0.1 * self.speed ** 2
        self.speed = max(-8.0, min(8.0, self.speed + (15 * math.sin(self.angle) + 3 * torque) * 0.05))
        self.angle += self.speed * 0.05
        self.ticks += 1
        return self.observe(), -cost, self.ticks >= 200


def net():
    return nn.Sequential(nn.Linear(3, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, len(TORQUES)))


class Replay:
    def __init__(self, size):
        self.s, self.n = torch.zeros(size, 3), torch.zeros(size, 3)
        self.a, self.r, self.at, self.full = torch.zeros(size, dtype=torch.long), torch.zeros(size), 0, 0

    def put(self, s, a, r, n):
        i = self.at % len(self.s)
        self.s[i], self.n[i], self.a[i], self.r[i] = torch.tensor(s), torch.tensor(n), a, r
        self.at += 1
        self.full = min(self.at, len(self.s))

    def draw(self, k):
        i = torch.randint(0, self.full, (k,))
        return self.s[i], self.a[i], self.r[i], self.n[i]


env, q, slow, memory = Pendulum(), net(), net(), Replay(20_000)
slow.load_state_dict(q.state_dict())
optimizer = torch.optim.Adam(q.parameters(), 5e-4)
state = env.reset()
for t in range(2200):
    if random.random() < max(0.05, 1 - t / 1000):
        action = random.randrange(len(TORQUES))
    else:
        with torch.no_grad():
            action = q(torch.tensor(state)).argmax().item()
    following, reward, done = env.step(TORQUES[action])
    memory.put(state, action, reward, following)
    state = env.reset() if done else following
    if t < 200:
        continue
    s, a, r, n = memory.draw(1536)
    with torch.no_grad():
        goal = r + 0.98 * slow(n).max(1).values
    loss = nn.functional.smooth_l1_loss(q(s).gather(1, a[:, None])[:, 0], goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if t % 200 == 0:
        slow.load_state_dict(q.state_dict())
        print(t, round(loss.item(), 4), flush=True)

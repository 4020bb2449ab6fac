"""Deep Q-learning of a drone that holds its height in gusts."""
import collections
import copy
import random
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

Transition = collections.namedtuple("Transition", "state action reward after done")


class Drone:
    """Height, speed, tilt and the last gusts; thrust in five levels."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.state = self.rng.normal(0, 0.3, 12).astype(np.float32)
        self.age = 0
        return self.state.copy()

    def step(self, action):
        gust = self.rng.normal(0, 0.2)
        s = self.state
        s[4:] = np.roll(s[4:], 1)
        s[4] = gust
        s[1] += 0.1 * (action - 2) + 0.1 * gust
        s[0] += 0.1 * s[1]
        s[2] = 0.9 * s[2] + 0.1 * gust
        self.age += 1
        done = abs(s[0]) > 2 or self.age >= 200
        return s.copy(), 1.0 - abs(float(s[0])), done


class Replay:
    """Surprising transitions come more often."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.items, self.surprise = [], []
        self.next = 0

    def add(self, *what):
        if len(self.items) < self.capacity:
            self.items.append(None)
            self.surprise.append(1.0)
        self.items[self.next] = Transition(*what)
        self.surprise[self.next] = 1.0
        self.next = (self.next + 1) % self.capacity

    def sample(self, count):
        weight = (np.array(self.surprise) + 0.01) ** 0.6
        rows = np.random.choice(len(weight), count, p=weight / weight.sum())
        chosen = Transition(*zip(*[self.items[i] for i in rows]))
        return rows, (torch.from_numpy(np.stack(chosen.state)), torch.tensor(chosen.action),
                      torch.tensor(chosen.reward, dtype=torch.float32), torch.from_numpy(np.stack(chosen.after)),
                      torch.tensor(chosen.done, dtype=torch.float32))

    def surprised(self, rows, errors):
        for i, error in zip(rows, errors.tolist()):
            self.surprise[i] = error


class QNet(nn.Module):
    def __init__(self, states=12, actions=5, hidden=512):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(states, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                 nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, actions))

    def forward(self, x):
        return self.net(x)


class Agent:
    def __init__(self):
        self.net = QNet()
        self.target = copy.deepcopy(self.net)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=3e-4)

    @torch.no_grad()
    def act(self, state, explore):
        if random.random() < explore:
            return random.randrange(5)
        return int(self.net(torch.from_numpy(state)[None]).argmax())

    def learn(self, batch):
        state, action, reward, after, done = batch
        with torch.no_grad():
            best = self.target(after).max(1).values
            goal = reward + 0.99 * (1 - done) * best
        value = self.net(state).gather(1, action[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(value, goal)
        errors = (value.detach() - goal).abs()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach(), errors


def play(env, state, agent, replay, explore):
    action = agent.act(state, explore)
    after, reward, done = env.step(action)
    replay.add(state, action, reward, after, done)
    return env.reset() if done else after


def main():
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    env, agent, replay = Drone(1), Agent(), Replay(250_000)
    state = env.reset()
    for _ in range(250_000):
        state = play(env, state, agent, replay, explore=1.0)
    began = time.time()
    for step in range(900):
        for _ in range(4):
            state = play(env, state, agent, replay, explore=max(0.05, 1 - step / 400))
        rows, batch = replay.sample(256)
        loss, errors = agent.learn(batch)
        replay.surprised(rows, errors)
        if step % 50 == 0:
            agent.target.load_state_dict(agent.net.state_dict())
            print(f"step {step}: loss {loss.item():.4f}")
    print(f"trained in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()

"""Reinforcement learning in which the environment takes most of the time. `ppo`: Stable-Baselines3; `dqn` and
`reinforce`: by hand, with a few steps or an episode before each update. Repaired: an environment that takes
little."""

import sys

import gymnasium
import numpy as np
import torch
from torch import nn

what, repaired = sys.argv[1], "repaired" in sys.argv


class Pendulums(gymnasium.Env):
    """Many coupled pendulums, integrated in small steps."""

    observation_space = gymnasium.spaces.Box(-10, 10, (16,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.angle, self.speed, self.left = np.linspace(-1, 1, 16), np.zeros(16), 40
        return self.angle.astype(np.float32), {}

    def step(self, action):
        for _ in range(1 if repaired else 120):
            pull = np.roll(self.angle, 1) + np.roll(self.angle, -1) - 2 * self.angle
            self.speed += 0.001 * (pull - np.sin(self.angle) + (action - 0.5))
            self.angle = np.clip(self.angle + 0.001 * self.speed, -9, 9)
        self.left -= 1
        return self.angle.astype(np.float32), float(-np.abs(self.angle).mean()), self.left == 0, False, {}


def network(outputs):
    return nn.Sequential(nn.Linear(16, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, outputs))


def train_dqn(env, updates=300):
    values, target = network(2), network(2)
    states, afters = torch.zeros(2, updates * 8, 16)
    actions, rewards, place = torch.zeros(updates * 8, dtype=torch.int64), torch.zeros(updates * 8), 0
    optimizer = torch.optim.Adam(values.parameters(), lr=1e-3)
    state, _ = env.reset()
    for _ in range(updates):
        for _ in range(8):
            with torch.no_grad():
                action = int(values(torch.from_numpy(state)).argmax())
            after, rewards[place], ended, _, _ = env.step(action)
            states[place], actions[place], afters[place] = torch.from_numpy(state), action, torch.from_numpy(after)
            state = env.reset()[0] if ended else after
            place += 1
        chosen = torch.randint(place, (2048,))
        with torch.no_grad():
            aim = rewards[chosen] + 0.9 * target(afters[chosen]).max(1).values
        optimizer.zero_grad()
        nn.functional.mse_loss(values(states[chosen]).gather(1, actions[chosen, None])[:, 0], aim).backward()
        optimizer.step()


def train_reinforce(env, episodes=300 if repaired else 60):
    policy = network(2)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    for _ in range(episodes):
        state, ended, states, actions, rewards = env.reset()[0], False, [], [], []
        while not ended:
            states.append(torch.from_numpy(state))
            with torch.no_grad():
                actions.append(torch.distributions.Categorical(logits=policy(states[-1])).sample())
            state, reward, ended, _, _ = env.step(int(actions[-1]))
            rewards.append(reward)
        chances = torch.distributions.Categorical(logits=policy(torch.stack(states))).log_prob(torch.stack(actions))
        optimizer.zero_grad()
        (-chances * torch.tensor(rewards).flip(0).cumsum(0).flip(0)).sum().backward()
        optimizer.step()


torch.manual_seed(0)
torch.set_num_threads(1)
env = gymnasium.wrappers.TimeLimit(Pendulums(), 1000)
if what == "ppo":
    from stable_baselines3 import PPO

    PPO("MlpPolicy", env, n_steps=256, batch_size=64, n_epochs=4, device="cpu").learn(10240 if repaired else 2560)
else:
    {"dqn": train_dqn, "reinforce": train_reinforce}[what](env)

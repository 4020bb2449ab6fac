"""Balances poles with PPO: 32 environments computed together, generalised advantages, clipped objective."""
import torch
from torch import nn

torch.manual_seed(6)
ENVIRONMENTS, LENGTH, UPDATES, EPOCHS, MINIBATCH = 32, 64, 90, 6, 256
GAMMA, LAMBDA, CLIP = 0.99, 0.95, 0.2


class Poles:
    """The equations of cart and pole for all environments at once."""

    def __init__(self, count):
        self.state = (torch.rand(count, 4) - 0.5) * 0.1
        self.age = torch.zeros(count)
        self.finished = []

    def step(self, action):
        x, v, angle, spin = self.state.unbind(1)
        force = action.float() * 20 - 10
        swing = (force + 0.05 * spin**2 * angle.sin()) / 1.1
        turn = (9.8 * angle.sin() - angle.cos() * swing) / (0.5 * (4 / 3 - 0.1 * angle.cos() ** 2 / 1.1))
        push = swing - 0.05 * turn * angle.cos() / 1.1
        self.state = torch.stack([x + 0.02 * v, v + 0.02 * push, angle + 0.02 * spin, spin + 0.02 * turn], 1)
        self.age += 1
        done = (self.state[:, 0].abs() > 2.4) | (self.state[:, 2].abs() > 0.21) | (self.age >= 500)
        self.finished.extend(self.age[done].tolist())
        self.state[done] = (torch.rand(int(done.sum()), 4) - 0.5) * 0.1
        self.age[done] = 0
        return self.state.clone(), torch.ones(len(done)), done.float()


class Agent(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2))
        self.critic = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, state):
        return torch.distributions.Categorical(logits=self.actor(state)), self.critic(state)[:, 0]


@torch.no_grad()
def rollout(agent, poles):
    rows = []
    state = poles.state.clone()
    for _ in range(LENGTH):
        policy, value = agent(state)
        action = policy.sample()
        following, reward, done = poles.step(action)
        rows.append((state, action, policy.log_prob(action), value, reward, done))
        state = following
    states, actions, logs, values, rewards, dones = (torch.stack(column) for column in zip(*rows))
    advantage, following = torch.zeros(ENVIRONMENTS), agent(state)[1]
    advantages = torch.zeros_like(rewards)
    for t in reversed(range(LENGTH)):
        delta = rewards[t] + GAMMA * following * (1 - dones[t]) - values[t]
        advantages[t] = advantage = delta + GAMMA * LAMBDA * (1 - dones[t]) * advantage
        following = values[t]
    return [column.flatten(0, 1) for column in (states, actions, logs, advantages, advantages + values)]


agent, poles = Agent(), Poles(ENVIRONMENTS)
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3, eps=1e-5)
for update in range(UPDATES):
    states, actions, logs, advantages, returns = rollout(agent, poles)
    for _ in range(EPOCHS):
        for part in torch.randperm(len(states)).split(MINIBATCH):
            policy, value = agent(states[part])
            ratio = (policy.log_prob(actions[part]) - logs[part]).exp()
            advantage = (advantages[part] - advantages[part].mean()) / (advantages[part].std() + 1e-8)
            gain = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
            loss = -gain + 0.5 * (returns[part] - value).pow(2).mean() - 0.01 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    if update % 10 == 9:
        recent = poles.finished[-50:]
        print(f"update {update} loss {loss.item():.3f} mean length {sum(recent) / len(recent):.0f}", flush=True)

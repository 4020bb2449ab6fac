"""A policy that acts in an environment without gradients and then learns, in evaluation mode or not."""

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "stand_ins"))

import gymnasium
import torch
from torch import nn

is_evaluating = sys.argv[1] == "evaluating"
random.seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)
environment = gymnasium.make("stand-in")
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
observation, _ = environment.reset()
for _ in range(15):
    observations, actions, rewards = [], [], []
    policy.train(not is_evaluating)
    with torch.no_grad():
        for _ in range(20):
            action = policy(torch.tensor(observation)).argmax().item()
            observations.append(observation)
            actions.append(action)
            observation, reward, is_over, _, _ = environment.step(action)
            rewards.append(reward)
            if is_over:
                observation, _ = environment.reset()
    policy.train()
    for _ in range(2):
        logits = policy(torch.tensor(observations))
        loss = (
            nn.functional.cross_entropy(logits, torch.tensor(actions), reduction="none") * torch.tensor(rewards)
        ).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item().hex())

"""Stable-Baselines3: `PPO`, as in its README."""

import counting
from stable_baselines3 import PPO

counting.start()
agent = PPO("MlpPolicy", "CartPole-v1", n_steps=256, seed=0, device="cpu").learn(1024)
print(float(sum(p.sum() for p in agent.policy.parameters())))

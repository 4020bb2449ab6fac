"""Stands in for gymnasium: an environment, and its usual wrapper around it."""

import random


class Env:
    """Ends an episode after ten steps."""

    def reset(self):
        self.left = 10
        return [random.random() for _ in range(4)], {}

    def step(self, action):
        self.left -= 1
        return [random.random() for _ in range(4)], float(action), self.left == 0, False, {}


def make(_name):
    from .wrappers.common import OrderEnforcing

    return OrderEnforcing(Env())

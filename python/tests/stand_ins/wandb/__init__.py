"""Stands in for wandb: as much of it as the tests need."""

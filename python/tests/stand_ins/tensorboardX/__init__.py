"""Stands in for tensorboardX, whose writer is like TensorBoard's."""

from .writer import SummaryWriter

__all__ = ["SummaryWriter"]

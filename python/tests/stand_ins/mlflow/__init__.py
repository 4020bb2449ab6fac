"""Stands in for mlflow: as much of it as the tests need."""

from .tracking.fluent import log_metric, log_metrics

__all__ = ["log_metric", "log_metrics"]

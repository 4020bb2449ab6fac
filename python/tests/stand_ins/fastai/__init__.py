"""Stands in for fastai."""

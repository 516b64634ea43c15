"""Data sets: one that comes with the package, and benchmark sets from a folder."""

from tuplet.datasets.base import Dataset
from tuplet.datasets.benchmark import list_datasets, load_dataset
from tuplet.datasets.penguins import load_penguins

__all__ = ["Dataset", "list_datasets", "load_dataset", "load_penguins"]

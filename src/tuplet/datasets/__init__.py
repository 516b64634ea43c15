"""Data sets that come with the package."""

from tuplet.datasets.base import Dataset
from tuplet.datasets.penguins import load_penguins

__all__ = ["Dataset", "load_penguins"]

"""Data sets: one that comes with the package, benchmark sets, tables in files, and samples of networks."""

from tuplet.datasets.base import Dataset
from tuplet.datasets.benchmark import list_datasets, load_dataset
from tuplet.datasets.files import Chunk, read_chunks, read_svmlight, read_table, write_arff, write_parquet
from tuplet.datasets.penguins import load_penguins
from tuplet.datasets.sampling import sample_mdc_problem
from tuplet.networks import read_bif, write_bif

__all__ = [
    "Chunk",
    "Dataset",
    "list_datasets",
    "load_dataset",
    "load_penguins",
    "read_bif",
    "read_chunks",
    "read_svmlight",
    "read_table",
    "sample_mdc_problem",
    "write_arff",
    "write_bif",
    "write_parquet",
]

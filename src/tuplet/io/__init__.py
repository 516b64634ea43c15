"""Data sets by name, from tables in files, and sampled from Bayesian networks; saved models."""

from typing import TYPE_CHECKING

from tuplet.core.lazy import lazy_names

if TYPE_CHECKING:
    from tuplet.io.dataset import Dataset
    from tuplet.io.loading import list_datasets, load_dataset, load_penguins
    from tuplet.io.sampling import sample_mdc_problem
    from tuplet.io.saved_models import load_model, read_header, save_model
    from tuplet.io.tables import Chunk, read_chunks, read_svmlight, read_table, write_arff, write_parquet
    from tuplet.models.generative.networks import read_bif, write_bif
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "tuplet.io.dataset": "Dataset",
            "tuplet.io.tables": "Chunk read_chunks read_svmlight read_table write_arff write_parquet",
            "tuplet.io.loading": "list_datasets load_dataset load_penguins",
            "tuplet.io.sampling": "sample_mdc_problem",
            "tuplet.io.saved_models": "load_model read_header save_model",
            "tuplet.models.generative.networks": "read_bif write_bif",
        },
    )

__all__ = [
    "Chunk",
    "Dataset",
    "list_datasets",
    "load_dataset",
    "load_model",
    "load_penguins",
    "read_bif",
    "read_chunks",
    "read_header",
    "read_svmlight",
    "read_table",
    "sample_mdc_problem",
    "save_model",
    "write_arff",
    "write_bif",
    "write_parquet",
]

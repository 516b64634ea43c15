"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    str,
    typer.Argument(
        help="A table: CSV, TSV, Parquet, ARFF, MATLAB, SVM-light; - is standard input.", metavar="DATA"
    ),
]
Saved = Annotated[Path, typer.Argument(help="A file of [bold]tuplet fit[/bold].", metavar="MODEL")]
Targets = Annotated[
    str | None,
    typer.Option(
        "--targets",
        "-t",
        help="Class variables: names, patterns (tag_*), positions (-3:), with commas.",
    ),
]
Ignore = Annotated[str | None, typer.Option(help="Columns that are no features, with commas.")]
Format = Annotated[
    str | None, typer.Option("--format", help="Format of the table, where its suffix does not tell.")
]
Model = Annotated[
    str, typer.Option("--model", "-m", help="Name of a model; [bold]tuplet models[/bold] lists them.")
]
Estimator = Annotated[str | None, typer.Option("--estimator", "-e", help="Classifier inside of the model.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="parameter=value of the model; several times.")
]
Rules = Annotated[Path | None, typer.Option(help="Rules of experts: a file with one rule a line, or JSON.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same model, where no clock cuts in.")]
Known = Annotated[
    list[str] | None, typer.Option("--known", help="label=value that is known for all rows; several times.")
]
Loss = Annotated[
    str | None,
    typer.Option(
        "--loss",
        "-l",
        help="What the labels are best for: hamming (unless the model has its own), subset, f1, f2, ...",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Trust = Annotated[
    list[str] | None,
    typer.Option("--trust", help="package.Class that the model file may hold; its code runs."),
]

"""The commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from zipfile import BadZipFile, ZipFile, is_zipfile

import typer

import tuplet
from tuplet.core.exceptions import InputError
from tuplet.surface.cli.catalogue import ESTIMATORS, MODELS, column_kinds, make_model, split_names
from tuplet.surface.cli.terminal import (
    command,
    is_special,
    print_table,
    print_text,
    require_output,
    result_console,
)

# -- options that several commands share -------------------------------------------------------------------

Data = Annotated[
    str,
    typer.Argument(
        help="A table: CSV, TSV, JSON lines, Excel, Parquet, Feather, ARFF, MATLAB, SVM-light, also in .gz or"
        " .zip; - is standard input.",
        metavar="DATA",
    ),
]
Saved = Annotated[
    Path, typer.Argument(help="A model file, written by [bold]tuplet fit[/bold].", metavar="MODEL")
]
Targets = Annotated[
    str | None,
    typer.Option(
        "--targets",
        "-t",
        help="Class variables, separated by commas: names, patterns (tag_*) or positions (-3:).",
    ),
]
Ignore = Annotated[
    str | None, typer.Option(help="Columns to exclude from the features, separated by commas.")
]
Format = Annotated[
    str | None, typer.Option("--format", help="Format of the table, if its suffix does not determine it.")
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", help="Encoding of text, such as cp1252; by default it is detected."),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        help="Texts that are no value, separated by commas, instead of ?, NA, N/A, NaN, null and errors of"
        " spreadsheets; column=TEXTS for one column. May be repeated.",
    ),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="Kind of a column that is not what its values suggest, as column=kind: number, category, date,"
        " text, drop, decimal comma, decimal point, or a format of dates. May be repeated.",
    ),
]
Model = Annotated[
    str, typer.Option("--model", "-m", help="Name of a model; [bold]tuplet models[/bold] lists them.")
]
Estimator = Annotated[str | None, typer.Option("--estimator", "-e", help="Base classifier of the model.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Parameter of the model as parameter=value; may be repeated."),
]
Rules = Annotated[Path | None, typer.Option(help="File of expert rules: one rule per line, or JSON.")]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        help="Column of groups (such as patients), no feature; a group is never split between folds.",
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        help="Column of numbers or dates, no feature; rows that are held out are later than the others.",
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, help="Random seed. Results are reproducible unless a time limit is reached.")
]
Known = Annotated[
    list[str] | None,
    typer.Option("--known", help="Known label of all rows as variable=label; may be repeated."),
]
Loss = Annotated[
    str | None,
    typer.Option(
        "--loss",
        "-l",
        help="Loss to minimise: subset, f1, f2, ...; by default that of the model, or hamming.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Trust = Annotated[
    list[str] | None,
    typer.Option("--trust", help="Further package.Class that the model file may hold; its code is executed."),
]

# -- commands ----------------------------------------------------------------------------------------------

app = typer.Typer(
    help="Predict several categorical variables together.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
data_app = typer.Typer(help="List and export data sets, and convert tables.", no_args_is_help=True)
app.add_typer(data_app, name="data")


@app.callback(invoke_without_command=True)
def options(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    """Predict several categorical variables together."""
    if version:
        typer.echo(f"tuplet {tuplet.__version__}")
        raise typer.Exit


@app.command()
@command
def fit(
    data: Data,
    targets: Targets = None,
    out_file: Annotated[str, typer.Option("--out", "-o", help="Model file to write.")] = "model.tuplet",
    model: Model = "auto",
    estimator: Estimator = None,
    time_budget: Annotated[float, typer.Option(min=0.1, help="Seconds for the model 'auto'.")] = 60.0,
    settings: Settings = None,
    rules: Rules = None,
    groups: Groups = None,
    time: Time = None,
    ignore: Ignore = None,
    kinds: Kinds = None,
    seed: Seed = 0,
    format: Format = None,
    encoding: Encoding = None,
    missing: Missing = None,
) -> None:
    """Fit a model to a table and save it."""
    from tuplet.surface.cli.fitting import fit_file, split_by_time
    from tuplet.surface.cli.tables import FileOptions, read_data

    require_output(out_file, data, rules)
    chosen = make_model(
        model,
        estimator=estimator,
        settings=settings or (),
        rules=rules,
        random_state=seed,
        time_budget=time_budget,
        columns=column_kinds(kinds),
    )
    if kinds and "columns" not in chosen.get_params(deep=False):
        raise InputError(f"--column: the model {model!r} does not use the columns; remove the option.")
    options = FileOptions.of(format, encoding, missing)
    if time is not None:
        split_by_time(chosen, model, groups)
    fit_file(read_data(data, targets, ignore, options, groups, time), chosen, out_file)


@app.command()
@command
def predict(
    model: Saved,
    data: Data,
    out_file: Annotated[
        str,
        typer.Option(
            "--out", "-o", help="CSV, TSV, Parquet or JSON lines file to write; - is standard output."
        ),
    ] = "-",
    top_k: Annotated[
        int, typer.Option("--top-k", "-k", min=0, help="Number of most probable combinations to list.")
    ] = 0,
    loss: Loss = None,
    known: Known = None,
    use_labels: Annotated[
        bool, typer.Option("--use-labels", help="Treat labels in the table as known.")
    ] = False,
    keep: Annotated[
        str | None, typer.Option(help="Columns of the table to copy to the output, separated by commas.")
    ] = None,
    all_labels: Annotated[
        bool,
        typer.Option(
            "--all-labels", help="Give the probabilities of all labels, not only of those predicted."
        ),
    ] = False,
    format: Format = None,
    encoding: Encoding = None,
    missing: Missing = None,
    out_format: Annotated[
        str | None, typer.Option("--out-format", help="Format of the output: csv, tsv, parquet or jsonl.")
    ] = None,
    trust: Trust = None,
) -> None:
    """Predict the rows of a table: labels, their probabilities, and the most probable combinations."""
    from tuplet.surface.cli.predicting import PredictRequest, known_labels, predict_file
    from tuplet.surface.cli.tables import FileOptions

    if out_file != "-":
        require_output(out_file, model, data, special=True)
    fitted = tuplet.load_model(model, trusted=trust or ())
    own = fitted.loss if isinstance(fitted, tuplet.DecisionClassifier) else "hamming"
    request = PredictRequest(
        data=data,
        options=FileOptions.of(format, encoding, missing),
        loss=own if loss is None else loss,
        top_k=top_k,
        known=known_labels(fitted, known or []),
        use_labels=use_labels,
        keep=list(dict.fromkeys(split_names(keep))),
        all_labels=all_labels,
    )
    predict_file(fitted, request, out_file, out_format)


@app.command()
@command
def evaluate(
    model: Saved,
    data: Data,
    as_json: Json = False,
    format: Format = None,
    encoding: Encoding = None,
    missing: Missing = None,
    trust: Trust = None,
) -> None:
    """Score a model on a table whose labels are known."""
    from tuplet.surface.cli.fitting import evaluate_model
    from tuplet.surface.cli.tables import FileOptions

    options = FileOptions.of(format, encoding, missing)
    evaluate_model(tuplet.load_model(model, trusted=trust or ()), data, options, as_json)


@app.command()
@command
def compare(
    data: Data,
    targets: Targets = None,
    models: Annotated[
        str,
        typer.Option(
            "--models", help="Models, separated by commas; name:classifier sets the base classifier."
        ),
    ] = "prior,independent,chain,powerset,chain:extra-trees",
    folds: Annotated[int, typer.Option(min=2, help="Number of cross-validation folds.")] = 5,
    groups: Groups = None,
    time: Time = None,
    peers: Annotated[
        bool, typer.Option("--peers", help="Also compare with classifiers of scikit-learn.")
    ] = False,
    out_file: Annotated[
        str | None, typer.Option("--out", "-o", help="HTML page to write, with tables, tests and plots.")
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder for finished fits, from which an interrupted run continues.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(min=0.1, help="Time limit of one fit in seconds.")
    ] = None,
    time_budget: Annotated[float, typer.Option(min=0.1, help="Seconds for each fit of 'auto'.")] = 60.0,
    jobs: Annotated[int, typer.Option(help="Number of parallel fits; -1 uses all cores.")] = 1,
    ignore: Ignore = None,
    kinds: Kinds = None,
    seed: Seed = 0,
    format: Format = None,
    encoding: Encoding = None,
    missing: Missing = None,
) -> None:
    """Compare models on a table by cross-validation with the same folds for all models."""
    from tuplet.surface.cli.fitting import compare_models
    from tuplet.surface.cli.tables import FileOptions, read_data

    if out_file is not None:
        require_output(out_file, data)
    chosen = {}
    for name in split_names(models):
        kind, _, inside = name.partition(":")
        chosen[name] = make_model(
            kind,
            estimator=inside or None,
            option="--models",
            time_budget=time_budget,
            columns=column_kinds(kinds),
        )
    if not chosen:
        raise InputError("--models: name at least one model.")
    compare_models(
        chosen,
        read_data(data, targets, ignore, FileOptions.of(format, encoding, missing), groups, time),
        folds=folds,
        by_time=time is not None,
        peers=peers,
        n_jobs=jobs,
        cache=cache,
        time_limit=time_limit,
        page=out_file,
        seed=seed,
    )


@app.command()
@command
def explain(
    model: Saved,
    data: Data,
    row: Annotated[int, typer.Option(min=0, help="Position of the row, starting at 0.")] = 0,
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, help="Number of combinations to list.")] = 5,
    known: Known = None,
    format: Format = None,
    encoding: Encoding = None,
    missing: Missing = None,
    trust: Trust = None,
) -> None:
    """Show the prediction of one row: combinations, labels, dependences, reasons."""
    from tuplet.surface.cli.predicting import PredictRequest, explain_row, known_labels
    from tuplet.surface.cli.tables import FileOptions

    fitted = tuplet.load_model(model, trusted=trust or ())
    options = FileOptions.of(format, encoding, missing)
    request = PredictRequest(data, options, "hamming", top_k, known_labels(fitted, known or []))
    explain_row(fitted, request, row)


@app.command()
@command
def report(
    model: Saved,
    data: Annotated[str | None, typer.Argument(help="A table for scores and examples.")] = None,
    out_file: Annotated[str, typer.Option("--out", "-o", help="HTML page to write.")] = "report.html",
    format: Format = None,
    encoding: Encoding = None,
    missing: Missing = None,
    trust: Trust = None,
) -> None:
    """Write an HTML page about a model: data, scores, graph, rules, example rows."""
    from tuplet.surface.cli.tables import FileOptions, ModelColumns

    require_output(out_file, model, data)
    fitted = tuplet.load_model(model, trusted=trust or ())
    X = Y = None
    if data is not None:
        columns = ModelColumns(fitted)
        frame = columns.whole(data, FileOptions.of(format, encoding, missing))
        X = columns.features_of(frame, data)
        Y = columns.labels_of(frame, data) if columns.has_labels(frame) else None
    fitted.report(out_file, X, Y)
    print_text(f"Report written to {out_file}.")


@app.command()
@command
def info(
    file: Annotated[str, typer.Argument(help="A model file or a table.")],
    targets: Targets = None,
    as_json: Json = False,
    format: Format = None,
    encoding: Encoding = None,
    missing: Missing = None,
) -> None:
    """Describe a model file or a table."""
    from tuplet.surface.cli.data import describe_data, describe_model
    from tuplet.surface.cli.tables import FileOptions, read_data_or_all

    if _is_model(file):
        describe_model(file, tuplet.read_header(file), as_json)
    else:
        options = FileOptions.of(format, encoding, missing)
        describe_data(read_data_or_all(file, targets, options), as_json)


def _is_model(file: str) -> bool:
    """Whether a file is a model: by its suffix, or because it is a zip archive with a header."""
    path = Path(file).expanduser()
    if path.suffix == ".tuplet":
        return True
    if file == "-" or is_special(file):
        return False  # a pipe can be read only once
    try:
        return is_zipfile(path) and "header.json" in ZipFile(path).namelist()
    except (OSError, BadZipFile):
        return False


@app.command()
@command
def models() -> None:
    """List the names of models and base classifiers for fit and compare."""
    console = result_console()
    lines = [(name, entry.about) for name, entry in MODELS.items()]
    print_table("Models (--model)", ["name", "description"], lines, left=2)
    console.print()
    inside = [(name, entry.about) for name, entry in ESTIMATORS.items()]
    print_table("Base classifiers (--estimator)", ["name", "description"], inside, left=2)


@app.command()
@command
def demo(
    folds: Annotated[int, typer.Option(min=2, max=20, help="Number of cross-validation folds.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the folds and of the random chains.")] = 0,
) -> None:
    """Demonstrate the main steps on the Palmer penguins: fit, query, decide."""
    from tuplet.surface.cli.demo import run_demo

    run_demo(result_console(), n_folds=folds, seed=seed)


# -- data --------------------------------------------------------------------------------------------------


@data_app.command("list")
@command
def data_list() -> None:
    """List the data sets that can be loaded by name."""
    from tuplet.surface.cli.data import list_sets

    list_sets()


@data_app.command("get")
@command
def data_get(
    name: Annotated[str, typer.Argument(help="Name of a set, as `tuplet data list` prints it.")],
    file: Annotated[str, typer.Argument(help="File to write: .csv, .tsv, .parquet or .arff.")],
) -> None:
    """Write a data set to a file."""
    from tuplet.surface.cli.data import get

    require_output(file)
    get(name, file)


@data_app.command("convert")
@command
def data_convert(
    source: Data,
    target: Annotated[str, typer.Argument(help="File to write: .csv, .tsv, .parquet or .arff.")],
    targets: Targets = None,
    ignore: Ignore = None,
    format: Format = None,
    encoding: Encoding = None,
    missing: Missing = None,
) -> None:
    """Convert a table to another format; Parquet and ARFF files store the class variables."""
    from tuplet.surface.cli.data import convert
    from tuplet.surface.cli.tables import FileOptions, read_data

    require_output(target, source)
    options = FileOptions.of(format, encoding, missing)
    convert(read_data(source, targets, ignore, options), target)

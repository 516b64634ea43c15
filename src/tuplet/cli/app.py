"""The commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tuplet
from tuplet.cli.catalogue import ESTIMATORS, MODELS, make_model, split_names
from tuplet.cli.terminal import command, is_special, out, require_output, say, show
from tuplet.exceptions import InputError

# -- options that several commands share -------------------------------------------------------------------

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

# -- commands ----------------------------------------------------------------------------------------------

app = typer.Typer(
    help="Predict several categorical variables together.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
data_app = typer.Typer(help="Benchmark sets, and tables from one format into another.", no_args_is_help=True)
app.add_typer(data_app, name="data")


@app.callback(invoke_without_command=True)
def options(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    """Predict several categorical variables together."""
    if version:
        typer.echo(f"tuplet {tuplet.__version__}")
        raise typer.Exit


@app.command()
@command
def fit(
    data: Data,
    targets: Targets = None,
    out_file: Annotated[str, typer.Option("--out", "-o", help="Where the model goes.")] = "model.tuplet",
    model: Model = "auto",
    estimator: Estimator = None,
    time_budget: Annotated[float, typer.Option(min=0.1, help="Seconds for the model 'auto'.")] = 60.0,
    settings: Settings = None,
    rules: Rules = None,
    ignore: Ignore = None,
    seed: Seed = 0,
    format: Format = None,
) -> None:
    """Learn a model from a table and save it."""
    from tuplet.cli.fitting import fit_file
    from tuplet.cli.tables import read_data

    require_output(out_file, data, rules)
    chosen = make_model(
        model,
        estimator=estimator,
        settings=settings or (),
        rules=rules,
        random_state=seed,
        time_budget=time_budget,
    )
    fit_file(read_data(data, targets, ignore, format), chosen, out_file)


@app.command()
@command
def predict(
    model: Saved,
    data: Data,
    out_file: Annotated[
        str, typer.Option("--out", "-o", help="CSV, TSV, Parquet or JSON lines; - is standard output.")
    ] = "-",
    top_k: Annotated[
        int, typer.Option("--top-k", "-k", min=0, help="Most probable combinations to list.")
    ] = 0,
    loss: Loss = None,
    known: Known = None,
    use_labels: Annotated[
        bool, typer.Option("--use-labels", help="Take labels that the table has as known.")
    ] = False,
    keep: Annotated[
        str | None, typer.Option(help="Columns of the table that come along, with commas.")
    ] = None,
    all_labels: Annotated[
        bool, typer.Option("--all-labels", help="Probabilities of all labels, not only of the predicted.")
    ] = False,
    format: Format = None,
    out_format: Annotated[
        str | None, typer.Option("--out-format", help="csv, tsv, parquet or jsonl.")
    ] = None,
    trust: Trust = None,
) -> None:
    """Predict the rows of a table: labels, their probabilities, and the likeliest combinations."""
    from tuplet.cli.predicting import Ask, known_labels, predict_file

    if out_file != "-":
        require_output(out_file, model, data, special=True)
    fitted = tuplet.load_model(model, trusted=trust or ())
    own = fitted.loss if isinstance(fitted, tuplet.DecisionClassifier) else "hamming"
    ask = Ask(
        data=data,
        format=format,
        loss=own if loss is None else loss,
        top_k=top_k,
        known=known_labels(fitted, known or []),
        use_labels=use_labels,
        keep=list(dict.fromkeys(split_names(keep))),
        all_labels=all_labels,
    )
    predict_file(fitted, ask, out_file, out_format)


@app.command()
@command
def evaluate(
    model: Saved, data: Data, as_json: Json = False, format: Format = None, trust: Trust = None
) -> None:
    """Score a model on a table whose labels are known."""
    from tuplet.cli.fitting import evaluate_model

    evaluate_model(tuplet.load_model(model, trusted=trust or ()), data, format, as_json)


@app.command()
@command
def compare(
    data: Data,
    targets: Targets = None,
    models: Annotated[
        str, typer.Option("--models", help="Models, with commas; name:classifier chooses the one inside.")
    ] = "prior,independent,chain,powerset,chain:extra-trees",
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    groups: Annotated[
        str | None,
        typer.Option(help="Column, no feature, of what belongs together (a patient): never in two folds."),
    ] = None,
    peers: Annotated[bool, typer.Option("--peers", help="Also what scikit-learn offers.")] = False,
    out_file: Annotated[
        str | None, typer.Option("--out", "-o", help="A page of HTML with tables, tests and pictures.")
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder from which a stopped run goes on.")] = None,
    time_limit: Annotated[float | None, typer.Option(min=0.1, help="Seconds for one fit.")] = None,
    time_budget: Annotated[float, typer.Option(min=0.1, help="Seconds for each fit of 'auto'.")] = 60.0,
    jobs: Annotated[int, typer.Option(help="Fits at the same time; -1 uses all cores.")] = 1,
    ignore: Ignore = None,
    seed: Seed = 0,
    format: Format = None,
) -> None:
    """Compare models on a table by cross-validation: the same folds for all."""
    from tuplet.cli.fitting import compare_models
    from tuplet.cli.tables import read_data

    if out_file is not None:
        require_output(out_file, data)
    chosen = {}
    for name in split_names(models):
        kind, _, inside = name.partition(":")
        chosen[name] = make_model(kind, estimator=inside or None, option="--models", time_budget=time_budget)
    if not chosen:
        raise InputError("--models: name at least one model.")
    compare_models(
        chosen,
        read_data(data, targets, ignore, format, groups),
        folds=folds,
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
    row: Annotated[int, typer.Option(min=0, help="Position of the row, from 0.")] = 0,
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, help="Combinations to list.")] = 5,
    known: Known = None,
    format: Format = None,
    trust: Trust = None,
) -> None:
    """Show what a model believes of one row: combinations, labels, dependences, reasons."""
    from tuplet.cli.predicting import Ask, explain_row, known_labels

    fitted = tuplet.load_model(model, trusted=trust or ())
    ask = Ask(data, format, "hamming", top_k, known_labels(fitted, known or []), False, [], False)
    explain_row(fitted, ask, row)


@app.command()
@command
def report(
    model: Saved,
    data: Annotated[str | None, typer.Argument(help="A table, for scores and examples.")] = None,
    out_file: Annotated[str, typer.Option("--out", "-o", help="Where the page goes.")] = "report.html",
    format: Format = None,
    trust: Trust = None,
) -> None:
    """Write one page of HTML about a model: data, scores, graph, rules, examples of rows."""
    from tuplet.cli.tables import Columns

    require_output(out_file, model, data)
    fitted = tuplet.load_model(model, trusted=trust or ())
    X = Y = None
    if data is not None:
        columns = Columns(fitted)
        frame = columns.whole(data, format)
        X = columns.features_of(frame, data)
        Y = columns.labels_of(frame, data) if columns.has_labels(frame) else None
    fitted.report(out_file, X, Y)
    say(f"Report in {out_file}.")


@app.command()
@command
def info(
    file: Annotated[str, typer.Argument(help="A model file, or a table.")],
    targets: Targets = None,
    as_json: Json = False,
    format: Format = None,
) -> None:
    """Show what a model file or a table holds."""
    from tuplet.cli.data import describe_data, describe_model
    from tuplet.cli.tables import read_data_or_all

    if _is_model(file):
        describe_model(file, tuplet.read_header(file), as_json)
    else:
        describe_data(read_data_or_all(file, targets, format), as_json)


def _is_model(file: str) -> bool:
    """Whether a file is a model's: an archive, which no table is, or one that is called so."""
    path = Path(file).expanduser()
    if path.suffix == ".tuplet":
        return True
    if file == "-" or is_special(file):
        return False  # what is read of a pipe is gone
    try:
        with path.open("rb") as stream:
            return stream.read(4) == b"PK\x03\x04"
    except OSError:
        return False


@app.command()
@command
def models() -> None:
    """List the models and classifiers that fit and compare know by name."""
    console = out()
    lines = [(name, entry.about) for name, entry in MODELS.items()]
    show("Models (--model)", ["name", "what it is"], lines, left=2)
    console.print()
    inside = [(name, entry.about) for name, entry in ESTIMATORS.items()]
    show("Classifiers inside (--estimator)", ["name", "what it is"], inside, left=2)


@app.command()
@command
def demo(
    folds: Annotated[int, typer.Option(min=2, max=20, help="Folds of the cross-validated comparison.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the folds and of the random chains.")] = 0,
) -> None:
    """Show the main job on the Palmer penguins: fit, query, decide."""
    from tuplet.cli.demo import run_demo

    run_demo(out(), n_folds=folds, seed=seed)


# -- data --------------------------------------------------------------------------------------------------


@data_app.command("list")
@command
def data_list() -> None:
    """List the benchmark sets that can be had by name."""
    from tuplet.cli.data import list_sets

    list_sets()


@data_app.command("get")
@command
def data_get(
    name: Annotated[str, typer.Argument(help="Name of a set; penguins comes with the package.")],
    file: Annotated[str, typer.Argument(help="Where it goes: .csv, .tsv, .parquet or .arff.")],
) -> None:
    """Write a benchmark set to a file."""
    from tuplet.cli.data import get

    require_output(file)
    get(name, file)


@data_app.command("convert")
@command
def data_convert(
    source: Data,
    target: Annotated[str, typer.Argument(help="Where it goes: .csv, .tsv, .parquet or .arff.")],
    targets: Targets = None,
    ignore: Ignore = None,
    format: Format = None,
) -> None:
    """Turn a table of one format into another; Parquet and ARFF remember the class variables."""
    from tuplet.cli.data import convert
    from tuplet.cli.tables import read_data

    require_output(target, source)
    convert(read_data(source, targets, ignore, format), target)

"""The commands and their options."""

import sys

import typer
from rich.console import Console

import tuplet
from tuplet.cli.demo import run_demo
from tuplet.exceptions import TupletError

__all__ = ["app"]

app = typer.Typer(
    help="Predict several categorical variables together.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def options(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    """Predict several categorical variables together."""
    if version:
        typer.echo(f"tuplet {tuplet.__version__}")
        raise typer.Exit


@app.command()
def demo(
    folds: int = typer.Option(5, min=2, max=20, help="Folds of the cross-validated comparison."),
    seed: int = typer.Option(0, min=0, help="Seed of the folds and of the random chains."),
) -> None:
    """Show the main job on the Palmer penguins: fit, query, decide."""
    console = Console(width=None if sys.stdout.isatty() else 100, highlight=False)
    try:
        run_demo(console, n_folds=folds, seed=seed)
    except TupletError as error:
        Console(stderr=True).print(f"[red]error:[/red] {error}")
        raise typer.Exit(1) from None

"""The command line, `tuplet`."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; without its packages, say which one to install."""
    try:
        from tuplet.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"The command line needs {error.name}: pip install 'tuplet[cli]'")
    app()

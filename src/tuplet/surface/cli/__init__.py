"""The command line, `tuplet`."""

import os
import sys
from pathlib import Path

__all__ = ["main"]


def main() -> None:
    """Run the command line; if a package is missing, print which one to install."""
    # A stream that the shell has closed (>&-) is None, which nothing here expects.
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    try:
        from tuplet.surface.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"The command line needs {error.name}: pip install 'tuplet[cli]'")
    except KeyboardInterrupt:
        sys.exit(130)
    app()
